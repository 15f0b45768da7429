def greet(args):
    return {"greeting": "Hello, " + args["person"] + "!"}
