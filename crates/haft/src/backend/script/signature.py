"""Reads the input schema of a tool from the signature and the docstring of its function.

Arguments: the script and the function's name. Prints one JSON object: `input_schema`, `description`
and `by_name` (whether the arguments are passed as keywords), or `problem`. The script is parsed and
never run: a tool that is only listed must not act.
"""

import ast
import json
import re
import sys

PLAIN = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "None": "null"}
LISTS = {"list", "List", "Sequence", "Iterable", "tuple", "Tuple", "set", "Set"}
MAPS = {"dict", "Dict", "Mapping", "MutableMapping"}
ANYTHING = {"Any", "object"}
SECTION = re.compile(r"^\s*(Args|Arguments|Parameters|Params)\s*:?\s*$")
OTHER_SECTION = re.compile(r"^\s*(Returns?|Raises|Yields?|Examples?|Notes?)\s*:?\s*$")
FIELD = re.compile(r"^\s*:param\s+(?:[\w\[\], |.]+\s+)?(\w+)\s*:\s*(.*)$")
OTHER_FIELD = re.compile(r"^\s*:(?!param\b)\w+.*:")
ARGUMENT = re.compile(r"^(\s*)(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")


class NotUsable(Exception):
    pass


def main(script, entrypoint):
    with open(script, "rb") as file:
        tree = ast.parse(file.read(), filename=script)
    function = find(tree, entrypoint)
    if function is None:
        raise NotUsable(f"it has no function `{entrypoint}` at its top level")
    text = ast.get_docstring(function) or ""
    description, arguments = read_docstring(text)
    signature = function.args
    if signature.vararg or signature.kwarg or signature.posonlyargs:
        raise NotUsable(
            f"`{entrypoint}` has `*`, `**` or positional-only parameters, which have no schema"
        )
    parameters = signature.args + signature.kwonlyargs
    named = [it for it in parameters if it.arg != "context"]
    if takes_all(named):
        return {"input_schema": {"type": "object"}, "description": description, "by_name": False}
    defaults = find_defaults(signature)
    properties, required = {}, []
    for parameter in named:
        name = parameter.arg
        if parameter.annotation is None:
            schema = {}
        else:
            schema = schema_of(parameter.annotation, f"parameter `{name}` of `{entrypoint}`")
        if name in arguments:
            schema["description"] = arguments[name]
        if name not in defaults:
            required.append(name)
        else:
            add_default(schema, defaults[name])
        properties[name] = schema
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return {"input_schema": schema, "description": description, "by_name": True}


def find(tree, entrypoint):
    kinds = ast.FunctionDef, ast.AsyncFunctionDef
    found = [it for it in tree.body if isinstance(it, kinds) and it.name == entrypoint]
    return found[-1] if found else None


def takes_all(parameters):
    """One parameter for all arguments, as in `def run(args)`."""
    if len(parameters) != 1:
        return False
    parameter = parameters[0]
    annotation = parameter.annotation
    if annotation is None:
        return parameter.arg in ("args", "arguments", "input")
    base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return name_of(base) in MAPS and parameter.arg in ("args", "arguments", "input")


def find_defaults(signature):
    defaults = dict(zip((it.arg for it in reversed(signature.args)), reversed(signature.defaults)))
    keywords = zip((it.arg for it in signature.kwonlyargs), signature.kw_defaults)
    defaults.update({name: value for name, value in keywords if value is not None})
    return defaults


def add_default(schema, node):
    try:
        value = ast.literal_eval(node)
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError):
        return  # An expression: optional, and the schema does not tell its value.
    if value is not None:
        schema["default"] = value


def name_of(node):
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Constant) and node.value is None:
        return "None"
    return None


def schema_of(node, what):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return schema_of(ast.parse(node.value, mode="eval").body, what)
        except SyntaxError:
            raise NotUsable(f"the type of {what} cannot be read") from None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return either([node.left, node.right], what)
    if isinstance(node, ast.Subscript):
        return generic(node, what)
    name = name_of(node)
    if name in PLAIN:
        return {"type": PLAIN[name]}
    if name in ANYTHING:
        return {}
    if name in LISTS:
        return {"type": "array"}
    if name in MAPS:
        return {"type": "object"}
    shown = ast.unparse(node)
    raise NotUsable(
        f"the type `{shown}` of {what} has no schema: use str, int, float, bool, list, dict, "
        "Optional, Union, Literal or Any, or write `input_schema`"
    )


def generic(node, what):
    name = name_of(node.value)
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name == "Optional":
        return either([items[0], ast.Constant(None)], what)
    if name == "Union":
        return either(items, what)
    if name == "Annotated":
        schema = schema_of(items[0], what)
        texts = [it.value for it in items[1:] if isinstance(it, ast.Constant)]
        texts = [text for text in texts if isinstance(text, str)]
        return {**schema, "description": texts[0]} if texts else schema
    if name == "Literal":
        return enumeration([ast.literal_eval(item) for item in items])
    if name in LISTS:
        items = [it for it in items if not (isinstance(it, ast.Constant) and it.value is ...)]
        return {"type": "array", "items": schema_of(items[0], what)}
    if name in MAPS:
        return {"type": "object", "additionalProperties": schema_of(items[-1], what)}
    return schema_of(node.value, what)


def enumeration(values):
    # Providers of models want a type beside the values.
    types = {type(value).__name__ for value in values}
    named = PLAIN.get(types.pop()) if len(types) == 1 else None
    return {"type": named, "enum": values} if named else {"enum": values}


def either(nodes, what):
    schemas = []
    for node in nodes:
        schema = schema_of(node, what)
        schemas.extend(schema["anyOf"] if set(schema) == {"anyOf"} else [schema])
    if all(set(schema) == {"type"} and isinstance(schema["type"], str) for schema in schemas):
        return {"type": [schema["type"] for schema in schemas]}
    return {"anyOf": schemas}


def read_docstring(text):
    """The description, and the text of each argument: Google style, or `:param name:` lines."""
    description, arguments = [], {}
    section, indent, last = "description", 0, None
    for line in text.splitlines():
        field = FIELD.match(line)
        if field:
            section, last = "fields", field.group(1)
            arguments[last] = field.group(2).strip()
        elif SECTION.match(line):
            section, last = "arguments", None
        elif OTHER_SECTION.match(line) or OTHER_FIELD.match(line):
            section, last = "other", None
        elif section == "description":
            description.append(line)
        elif section in ("arguments", "fields") and line.strip():
            entry = ARGUMENT.match(line) if section == "arguments" else None
            if entry and (last is None or len(entry.group(1)) <= indent):
                indent, last = len(entry.group(1)), entry.group(2)
                arguments[last] = entry.group(3).strip()
            elif last is not None:
                arguments[last] = f"{arguments[last]} {line.strip()}".strip()
    return "\n".join(description).strip(), {name: it for name, it in arguments.items() if it}


try:
    answer = main(*sys.argv[1:3])
except NotUsable as error:
    answer = {"problem": str(error)}
except SyntaxError as error:
    answer = {"problem": f"line {error.lineno} is not valid Python: {error.msg}"}
except (OSError, ValueError, RecursionError) as error:
    answer = {"problem": str(error)}
print(json.dumps(answer))
