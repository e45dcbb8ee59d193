"""The OpenAPI document, generated from the declarations of the calls."""

from __future__ import annotations

from collections.abc import Iterable

from millbeck import __version__
from millbeck.client.schemas.log_records import Json
from millbeck.registry.decision import MODES
from millbeck.registry.rest.calls import Call
from millbeck.registry.rest.forwarding import CONTENT_TYPE
from millbeck.registry.settings import LEVELS

_ERROR: Json = {
    "type": "object",
    "required": ["error_code", "message"],
    "properties": {"error_code": {"type": "integer"}, "message": {"type": "string"}},
}


_KNOWN: dict[str, Json] = {
    "schema": {
        "type": "string",
        "examples": ['"string"', '{"type": "object"}', 'syntax = "proto3"; message M { string a = 1; }'],
    },
    "schemaType": {"type": "string", "examples": ["AVRO", "JSON", "PROTOBUF"]},
    "compatibility": {"type": "string", "enum": list(LEVELS)},
    "mode": {"type": "string", "enum": list(MODES)},
    "version": {"type": "string", "examples": ["1", "latest"]},
    "id": {"type": "integer", "examples": [1]},
}
"""What is known of parameters and members beside their types."""


def openapi(calls: Iterable[Call]) -> Json:
    paths: dict[str, Json] = {}
    for call in calls:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Schema Registry", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR}},
    }


def _operation(call: Call) -> Json:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": _KNOWN.get(name, {"type": "string"})}
        for name in call.variables
    ]
    in_query = [{"name": name, "in": "query", "schema": {"type": kind}} for name, kind in call.parameters.items()]
    operation: Json = {
        "summary": call.summary,
        "operationId": f"{call.method.lower()} {call.path}",
        "parameters": in_path + in_query,
        "responses": {
            "200": {"description": "The answer.", "content": {CONTENT_TYPE: {}}},
            "4XX": _failure("The request is refused."),
            "5XX": _failure("The request could not be completed at the moment."),
        },
    }
    if call.method == "DELETE" and call.path == "/contexts/{context}":
        operation["responses"]["204"] = {"description": "It is deleted."}
    if call.body is not None:
        properties = {name: _member(name, kind) for name, kind in call.body.items()}
        schema = {"type": "object", "properties": properties}
        operation["requestBody"] = {"required": True, "content": {CONTENT_TYPE: {"schema": schema}}}
    return operation


def _member(name: str, kind: str) -> Json:
    known = _KNOWN.get(name, {})
    return known if known.get("type") == kind else {"type": kind}


def _failure(description: str) -> Json:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": description, "content": {CONTENT_TYPE: {"schema": schema}}}
