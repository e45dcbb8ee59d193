"""The table of APIs, derived from the declared requests and responses.

A module of declarations is imported when its API is first looked up: a node serves only some of them, and a command
sends three or four. Only the API keys are listed here; they are compared with the declaration when it is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from millbeck.wire.schema import Kind, schema_of

NEVER_FLEXIBLE = 32768
"""`Api.flexible_from` of an API that has no flexible version."""

API_VERSIONS = 18
"""The one API whose responses always have header version 0, so that a client that sent a newer version can parse the
response."""

_MODULES = {
    0: "produce",
    1: "fetch",
    2: "log_offsets",
    3: "metadata",
    8: "group_offsets",
    9: "group_offsets",
    10: "groups",
    11: "classic_groups",
    12: "classic_groups",
    13: "classic_groups",
    14: "classic_groups",
    15: "classic_groups",
    16: "groups",
    17: "authentication",
    18: "metadata",
    19: "topics",
    20: "topics",
    21: "topics",
    22: "transactions",
    23: "log_offsets",
    24: "transactions",
    25: "transactions",
    26: "transactions",
    27: "transactions",
    28: "transactions",
    29: "acls",
    30: "acls",
    31: "acls",
    32: "configs",
    33: "configs",
    34: "replicas",
    35: "replicas",
    36: "authentication",
    37: "topics",
    38: "authentication",
    39: "authentication",
    40: "authentication",
    41: "authentication",
    42: "groups",
    43: "replicas",
    44: "configs",
    45: "replicas",
    46: "replicas",
    47: "group_offsets",
    48: "quotas",
    49: "quotas",
    50: "authentication",
    51: "authentication",
    52: "quorum",
    53: "quorum",
    54: "quorum",
    55: "quorum",
    56: "replicas",
    57: "nodes",
    58: "nodes",
    59: "quorum",
    60: "metadata",
    61: "transactions",
    62: "nodes",
    63: "nodes",
    64: "nodes",
    65: "transactions",
    66: "transactions",
    67: "nodes",
    68: "consumer_groups",
    69: "consumer_groups",
    70: "nodes",
    71: "telemetry",
    72: "telemetry",
    73: "replicas",
    74: "configs",
    75: "metadata",
    76: "share_groups",
    77: "share_groups",
    78: "share_fetch",
    79: "share_fetch",
    80: "quorum",
    81: "quorum",
    82: "quorum",
    83: "share_state",
    84: "share_state",
    85: "share_state",
    86: "share_state",
    87: "share_state",
    88: "streams_groups",
    89: "streams_groups",
    90: "share_groups",
    91: "share_groups",
    92: "share_groups",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    key: int
    name: str
    request: type[Any]
    response: type[Any]
    min_version: int
    max_version: int
    flexible_from: int


class _Apis(Mapping[int, Api]):
    """All declared APIs by key, in order, each loaded on first access."""

    def __init__(self) -> None:
        self._read: dict[int, Api] = {}

    def __getitem__(self, key: int) -> Api:
        api = self._read.get(key)
        if api is None:
            api = self._read[key] = _read_module(key, _MODULES[key])
        return api

    def __contains__(self, key: object) -> bool:
        return key in _MODULES

    def __iter__(self) -> Iterator[int]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


def _read_module(key: int, module_name: str) -> Api:
    module = import_module(f"millbeck.wire.messages.{module_name}")
    declared: dict[Kind, type[Any]] = {}
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            value_schema = schema_of(value)
            if value_schema.api_key == key:
                declared.setdefault(value_schema.kind, value)
    request, response = declared[Kind.REQUEST], declared[Kind.RESPONSE]
    schema = schema_of(request)
    assert schema.api_key == key, f"{schema.name} is declared with key {schema.api_key} and listed with {key}"
    assert schema.versions == schema_of(response).versions, f"{schema.name} and its response differ in versions"
    return Api(
        key=key,
        name=schema.name.removesuffix("Request"),
        request=request,
        response=response,
        min_version=schema.versions.low,
        max_version=schema.versions.high,
        flexible_from=NEVER_FLEXIBLE if schema.flexible.is_empty else schema.flexible.low,
    )


APIS: Mapping[int, Api] = _Apis()
"""Every declared API. Which of them a node serves depends on its handlers."""
