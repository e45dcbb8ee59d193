"""Metrics of the authorizer, of client quotas and of the audit.

Allowed requests are not counted, because counting would be expensive compared with most of these decisions, which take
0.1 µs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.metrics import Rows
from millbeck.security.audit.events import AuditKind
from millbeck.security.standard_authorizer import StandardAuthorizer
from millbeck.server.metrics.tables import declare_single

if TYPE_CHECKING:
    from millbeck.server.node import Node


def declare_permission_metrics(node: Node) -> None:
    _declare_audit_metrics(node)
    failures = node.broker.seam_failures
    node.registry.callback_counter(
        "millbeck_seam_failures_total",
        "Exceptions of plugins, by the setting that configures them; each refused a request.",
        ["setting"],
        lambda: [((setting,), count) for setting, count in sorted(failures.items())],
    )
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
                    "Requests denied by the authorizer; in a dry run, requests that would be denied.",
                    lambda: broker.decisions.denied_count,
                ),
                (
                    "millbeck_authorizer_decisions_made_total",
                    "Authorizer decisions computed from the ACLs; the others came from the cache.",
                    lambda: authorizer.decided_count,
                ),
                (
                    "millbeck_authorizer_decisions_remembered",
                    "Authorizer decisions in the cache, which is cleared when the ACLs change.",
                    lambda: authorizer.remembered_count,
                ),
            ),
        )
    revocation = broker.revocation
    if revocation is not None:
        declare_single(
            node.registry,
            "",
            (
                (
                    "millbeck_sessions_revoked_total",
                    "Sessions ended because their user, token or JAAS entry was deleted.",
                    lambda: revocation.ended_count,
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
                "Seconds that clients were throttled because of quotas.",
                lambda: quotas.throttled_ms / 1000,
            ),
            (
                "millbeck_quota_refused_connections_total",
                "Connections closed because of the connection creation rate quota of their address.",
                lambda: quotas.connections.refused_count,
            ),
            (
                "millbeck_quota_muted_connections",
                "Connections that are muted because of a quota.",
                lambda: quotas.muted_count,
            ),
        ),
    )


def _declare_audit_metrics(node: Node) -> None:
    audit, registry = node.audit, node.registry
    if audit is None:
        return

    def events() -> Rows:
        return [((kind.value,), audit.counts[kind]) for kind in AuditKind]

    def written() -> Rows:
        return [((queue.name,), queue.written) for queue in audit.queues]

    def dropped() -> Rows:
        return [((queue.name,), queue.dropped) for queue in audit.queues]

    registry.callback_counter("millbeck_audit_events_total", "Audit events, including repetitions.", ["event"], events)
    registry.callback_counter(
        "millbeck_audit_written_total", "Lines written to the audit's file or topic.", ["sink"], written
    )
    registry.callback_counter(
        "millbeck_audit_dropped_total",
        "Lines lost because the queue of the audit's file or topic was full, or because a line exceeds the topic's "
        "max.message.bytes.",
        ["sink"],
        dropped,
    )
