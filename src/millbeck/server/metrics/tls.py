"""Metrics of TLS: days until certificates expire, results of certificate reloads, and results of handshakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.metrics import Rows

if TYPE_CHECKING:
    from millbeck.server.node import Node

_ENDPOINT = ("listener", "role")


def declare_tls_metrics(node: Node) -> None:
    registry, tls, clock = node.registry, node.broker.tls, node.environment.clock

    def days_left() -> Rows:
        now_ms = clock.wall_ms()
        return [
            ((each.name, each.role), certificate.days_left(now_ms))
            for each in tls.endpoints()
            if (certificate := each.loaded.material.certificate) is not None
        ]

    def reloads() -> Rows:
        return [
            ((each.name, each.role, outcome), count)
            for each in tls.endpoints()
            for outcome, count in (("renewed", each.reloads), ("refused", each.reload_failures))
        ]

    def handshakes() -> Rows:
        rows: list[tuple[tuple[str, str], int]] = []
        for each in tls.endpoints():
            if each.role != "listener":
                continue
            statistics = each.statistics
            rows.append(((each.name, "full"), statistics.succeeded - statistics.resumed))
            rows.append(((each.name, "resumed"), statistics.resumed))
            rows += [((each.name, reason.value), count) for reason, count in statistics.failed.items()]
        return rows

    registry.callback_gauge(
        "millbeck_certificate_days_left",
        "Days until the certificate of a listener (role listener), or of this node's connections to others (role "
        "client), expires.",
        _ENDPOINT,
        days_left,
    )
    registry.callback_counter(
        "millbeck_certificate_reloads_total",
        "Reloads of certificates, truststores or mapping rules: renewed, or refused because they are not usable.",
        [*_ENDPOINT, "outcome"],
        reloads,
    )
    registry.callback_counter(
        "millbeck_tls_connections_total",
        "TLS handshakes of clients by result: full, resumed, or the reason of the failure. Failures of the TLS "
        "record layer count as well.",
        ["listener", "outcome"],
        handshakes,
    )
