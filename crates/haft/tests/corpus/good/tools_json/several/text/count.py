def words(args):
    return {"words": len(args.get("text", "").split())}
