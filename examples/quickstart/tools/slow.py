import time


def run(args):
    time.sleep(args["seconds"])
    return {"waited": args["seconds"]}
