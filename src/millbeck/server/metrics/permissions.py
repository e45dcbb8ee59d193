"""Metrics of the authorizer and of client quotas. Decisions that allow are not counted: most of them take 0.1 µs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.security.standard_authorizer import StandardAuthorizer
from millbeck.server.metrics.tables import declare_single

if TYPE_CHECKING:
    from millbeck.server.node import Node


def declare_permission_metrics(node: Node) -> None:
    broker = node.broker
    authorizer = broker.authorizer
    if isinstance(authorizer, StandardAuthorizer):
        declare_single(
            node.registry,
            "",
            (
                ("kafka_server_authorizer_metrics_acls_total_count", "ACLs.", lambda: authorizer.count),
                (
                    "kafka_server_authorizer_metrics_authorization_denied_total",
                    "Decisions that denied, or in a dry run would have.",
                    lambda: broker.decisions.denied_count,
                ),
                (
                    "millbeck_authorizer_decisions_made_total",
                    "Decisions made from the ACLs; the others were remembered.",
                    lambda: authorizer.decided_count,
                ),
                (
                    "millbeck_authorizer_decisions_remembered",
                    "Decisions that are remembered until the ACLs change.",
                    lambda: authorizer.remembered_count,
                ),
            ),
        )
    quotas = broker.all_quotas
    declare_single(
        node.registry,
        "",
        (
            ("millbeck_quota_throttled_requests_total", "Requests over a quota.", lambda: quotas.throttled_count),
            (
                "millbeck_quota_throttle_seconds_total",
                "Time that clients were told to wait because of quotas.",
                lambda: quotas.throttled_ms / 1000,
            ),
            (
                "millbeck_quota_refused_connections_total",
                "Connections refused by a quota of their address.",
                lambda: quotas.connections.refused_count,
            ),
            ("millbeck_quota_muted_connections", "Connections that are muted by a quota.", lambda: quotas.muted_count),
        ),
    )
