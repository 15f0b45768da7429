async def run(args):
    return {"greeting": f"Hello, {args['name']}!"}
