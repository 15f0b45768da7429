"""Current weather for a city, from a fixed table."""

TABLE = {"Seoul": (21.5, "clear"), "Oslo": (4.0, "rain")}


async def run(args: dict) -> dict:
    temp, condition = TABLE.get(args["city"], (15.0, "unknown"))
    return {"temp": temp, "condition": condition}
