"""The output of ``kafka-broker-api-versions``: the versions of each API that a broker serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from millbeck.wire.api_keys import APIS

if TYPE_CHECKING:
    from millbeck.client.admin.results import NodeDescription

_OF_CONTROLLERS: Final = frozenset((52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82))
"""APIs of controllers: no broker serves them to clients, and Kafka's tool does not show them."""


def broker_lines(node: NodeDescription, ranges: Mapping[int, tuple[int, int]]) -> list[str]:
    """The lines of one broker: every API that a broker can serve, in the order of their keys.

    ``usable`` is the version that a client of the same release would choose.
    """
    keys = sorted({*ranges, *APIS} - _OF_CONTROLLERS)
    shown = [f"\t{APIS[key].name}({key}): {_versions(ranges.get(key))}" for key in keys]
    head = f"{node.host}:{node.port} (id: {node.node_id} rack: {node.rack or 'null'} isFenced: "
    return [f"{head}{str(node.is_fenced).lower()}) -> (", *(f"{line}," for line in shown[:-1]), *shown[-1:], ")"]


def _versions(found: tuple[int, int] | None) -> str:
    if found is None:
        return "UNSUPPORTED"
    low, high = found
    return f"{low if low == high else f'{low} to {high}'} [usable: {high}]"
