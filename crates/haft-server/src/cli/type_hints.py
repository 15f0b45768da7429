# Prints the JSON Schema of a tool script's arguments, from its type hints, and its docstring. Haft runs it with the
# script and the name of its function.
import enum
import importlib.util
import inspect
import json
import sys
import types
import typing

SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def schema(hint):
    if hint in SIMPLE:
        return {"type": SIMPLE[hint]}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (getattr(typing, "NotRequired", None), getattr(typing, "Required", None)):
        return schema(arguments[0])
    if origin is typing.Annotated:
        texts = [text for text in arguments[1:] if isinstance(text, str)]
        return {**schema(arguments[0]), **({"description": texts[0]} if texts else {})}
    if origin in (list, set, tuple, frozenset) or hint in (list, set, tuple):
        items = [it for it in arguments if it is not Ellipsis]
        return {"type": "array", **({"items": schema(items[0])} if items else {})}
    if origin is dict or hint is dict:
        return {"type": "object"}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, getattr(types, "UnionType", None)):
        return {"anyOf": [schema(it) for it in arguments]}
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return {"enum": [it.value for it in hint]}
    if typing.is_typeddict(hint):
        return record(hint)
    return {}


def record(hint):
    hints = typing.get_type_hints(hint, include_extras=True)
    required = [name for name in hints if name in hint.__required_keys__]
    properties = {name: schema(it) for name, it in hints.items()}
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def signature(function):
    hints = typing.get_type_hints(function, include_extras=True)
    parameters = [it for it in inspect.signature(function).parameters.values() if it.name != "context"]
    plain = [it for it in parameters if it.kind in (it.POSITIONAL_ONLY, it.POSITIONAL_OR_KEYWORD)]
    if plain:
        hint = hints.get(plain[0].name)
        return record(hint) if typing.is_typeddict(hint) else {"type": "object"}
    return {"type": "object"}


path, entrypoint = sys.argv[1:3]
spec = importlib.util.spec_from_file_location("haft_tool", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
function = getattr(module, entrypoint)
text = inspect.getdoc(function) or inspect.getdoc(module) or ""
print(json.dumps({"schema": signature(function), "description": text.split("\n\n")[0].replace("\n", " ")}))
