"""Generates models.py from the OpenAPI document on standard input.

Every schema of the document becomes a TypedDict or an alias, so the models need no package and cost
nothing at run time.
"""

import json
import keyword
import sys

HEAD = '''"""Shapes of the API, generated from its OpenAPI document by generate.py. Do not edit."""

from __future__ import annotations

from typing import Any, Literal, Union

from typing_extensions import NotRequired, TypedDict
'''
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def main():
    schemas = json.load(sys.stdin)["components"]["schemas"]
    parts = [HEAD] + [declaration(name, schemas[name]) for name in sorted(schemas)]
    names = "".join(f'    "{name}",\n' for name in sorted(schemas))
    print("\n\n\n".join(part.strip() for part in parts) + f"\n\n\n__all__ = [\n{names}]")


def declaration(name, schema):
    fields = fields_of(schema)
    if fields is None:
        return f"{name} = {kind(schema, quoted=True)}"
    if any(not key.isidentifier() or keyword.iskeyword(key) for key in fields):
        items = "".join(f"        {json.dumps(key)}: {quote(it)},\n" for key, it in fields.items())
        return f'{name} = TypedDict(\n    "{name}",\n    {{\n{items}    }},\n)'
    lines = [f"class {name}(TypedDict):"]
    text = " ".join(schema.get("description", "").split())
    if text:
        lines.append(f"    {docstring(text)}\n")
    lines.extend(f"    {key}: {it}" for key, it in fields.items())
    if len(lines) == 1:
        lines.append("    pass")
    return "\n".join(lines)


def docstring(text):
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}"""' if not text.endswith('"') else f'"""{text} """'


def quote(text):
    """The operands of a functional TypedDict are evaluated, so references are strings."""
    return json.dumps(text)


def fields_of(schema):
    """The fields of an object, also of one that is put together with `allOf`; None for anything else."""
    if "allOf" in schema:
        fields = {}
        for part in schema["allOf"]:
            # A referenced part cannot be repeated here: it is a dictionary of any form.
            own = fields_of(part) if "$ref" not in part else {}
            if own is None:
                return None
            fields.update(own)
        return fields or None
    if "properties" not in schema:
        return None
    required = set(schema.get("required", ()))
    fields = {}
    for key, value in schema["properties"].items():
        text = kind(value)
        fields[key] = text if key in required else f"NotRequired[{text}]"
    return fields


def kind(schema, quoted=False):
    if schema is True or not schema:
        return "Any"
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f'"{name}"' if quoted else name
    if "enum" in schema:
        return f"Literal[{', '.join(repr(value) for value in schema['enum'])}]"
    if "const" in schema:
        return f"Literal[{schema['const']!r}]"
    for word in "oneOf", "anyOf":
        if word in schema:
            return union([kind(part, quoted) for part in schema[word]])
    if "allOf" in schema:
        return "dict[str, Any]"
    types = schema.get("type")
    if isinstance(types, list):
        return union([kind({**schema, "type": it}, quoted) for it in types])
    if types in PLAIN:
        return PLAIN[types]
    if types == "array":
        return f"list[{kind(schema.get('items', {}), quoted)}]"
    if types == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {kind(values, quoted) if isinstance(values, dict) else 'Any'}]"
    return "Any"


def union(parts):
    parts = list(dict.fromkeys(parts))
    if "Any" in parts:
        return "Any"
    return parts[0] if len(parts) == 1 else f"Union[{', '.join(parts)}]"


main()
