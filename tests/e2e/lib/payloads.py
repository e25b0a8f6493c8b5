"""Payloads of the log against the catalogue's own schemas, read apart from the server's reader."""
import json
import os

from lib.check import check
from lib.server import ROOT

SCHEMAS = os.path.join(ROOT, "src", "event", "schemas")
KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
         "number": (int, float), "null": type(None)}
# What the schemas say; a further keyword wants a line below.
KNOWN = {"$schema", "title", "description", "type", "required", "properties", "items", "enum", "const",
         "minimum", "maximum", "maxLength", "minLength", "additionalProperties", "$ref", "format", "$defs"}


def schema_of(name):
    with open(os.path.join(SCHEMAS, name)) as f:
        return json.load(f)


def resolve(ref, name):
    name, _, pointer = (name + ref if ref.startswith("#") else ref).partition("#/")
    found = schema_of(name)
    for part in pointer.split("/"):
        found = found[part]
    return found, name


def is_kind(value, kind):
    kinds = kind if isinstance(kind, list) else [kind]
    return any(isinstance(value, KINDS[k]) and not (k in ("integer", "number") and value in (True, False)
                                                    and isinstance(value, bool)) for k in kinds)


def fit(value, schema, name, where):
    """Fails with the place where the value does not fit."""
    if schema is True:
        return
    check(not {k for k in schema if not k.startswith("x-")} - KNOWN, name, "has keywords unknown here", schema)
    if "$ref" in schema:
        target, at = resolve(schema["$ref"], name)
        fit(value, target, at, where)
    check("type" not in schema or is_kind(value, schema["type"]), where, value, schema)
    check("enum" not in schema or value in schema["enum"], where, value, schema)
    check("const" not in schema or value == schema["const"], where, value, schema)
    if isinstance(value, str):
        check(schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 1 << 30), where, schema)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        check(schema.get("minimum", value) <= value <= schema.get("maximum", value), where, value, schema)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            fit(item, schema.get("items", True), name, f"{where}/{i}")
    elif isinstance(value, dict):
        for key in schema.get("required", ()):
            check(key in value, where, "lacks", key)
        for key, item in value.items():
            rest = schema.get("additionalProperties", True)
            known = schema.get("properties", {}).get(key, rest)
            check(known is not False, where, "may not have", key)
            fit(item, known, name, f"{where}/{key}")


def check_payload(event):
    name = event["type"] + ".json"
    fit(event["payload"], schema_of(name), name, event["type"])
