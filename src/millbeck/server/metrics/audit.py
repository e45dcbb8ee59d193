"""Metrics of the audit: events, and lines that were written or dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.metrics import Rows
from millbeck.security.audit.events import AuditKind

if TYPE_CHECKING:
    from millbeck.server.node import Node


def declare_audit_metrics(node: Node) -> None:
    audit, registry = node.audit, node.registry
    if audit is None:
        return

    def events() -> Rows:
        return [((kind.value,), audit.counts[kind]) for kind in AuditKind]

    def written() -> Rows:
        return [((queue.name,), queue.written) for queue in audit.queues]

    def dropped() -> Rows:
        return [((queue.name,), queue.dropped) for queue in audit.queues]

    registry.callback_counter(
        "millbeck_audit_events_total", "Events of the audit; repeats count each.", ["event"], events
    )
    registry.callback_counter(
        "millbeck_audit_written_total", "Lines written to the audit's file or topic.", ["sink"], written
    )
    registry.callback_counter(
        "millbeck_audit_dropped_total",
        "Lines lost because the audit's file or topic could not be written for too long.",
        ["sink"],
        dropped,
    )
