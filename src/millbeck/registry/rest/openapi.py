"""The OpenAPI document, generated from the declarations of the calls."""

from __future__ import annotations

from collections.abc import Iterable

from millbeck import __version__
from millbeck.client.schemas.log_records import Json
from millbeck.registry.rest.calls import Call
from millbeck.registry.rest.forwarding import CONTENT_TYPE

_ERROR: Json = {
    "type": "object",
    "required": ["error_code", "message"],
    "properties": {"error_code": {"type": "integer"}, "message": {"type": "string"}},
}


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
        {"name": name, "in": "path", "required": True, "schema": {"type": "integer" if name == "id" else "string"}}
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
        properties = {name: {"type": kind} for name, kind in call.body.items()}
        schema = {"type": "object", "properties": properties}
        operation["requestBody"] = {"required": True, "content": {CONTENT_TYPE: {"schema": schema}}}
    return operation


def _failure(description: str) -> Json:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": description, "content": {CONTENT_TYPE: {"schema": schema}}}
