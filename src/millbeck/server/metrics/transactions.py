"""Transactions that this broker coordinates: their states, the markers on their way, and verification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.metrics import Registry, Rows

if TYPE_CHECKING:
    from millbeck.server.broker import Broker


def declare_transaction_metrics(registry: Registry, broker: Broker) -> None:
    transactions = broker.transactions

    def by_state() -> Rows:
        totals: dict[str, int] = {}
        for counts in transactions.counts():
            for status, count in counts.items():
                totals[status.shown] = totals.get(status.shown, 0) + count
        return [((state,), count) for state, count in totals.items()]

    registry.gauge_from("millbeck_transactional_ids", "Transactional ids by state.", ["state"], by_state)
    prefix = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
    sender = transactions.sender
    registry.gauge_from(
        f"{prefix}unknowndestinationqueuesize",
        "Markers for partitions that have no leader.",
        [],
        lambda: [((), sender.leaderless_count)],
    )
    registry.gauge_from(
        f"{prefix}logappendretryqueuesize",
        "Transactions whose markers or whose end are still to be written.",
        [],
        lambda: [((), sender.run_count)],
    )
    broker.verification.times_ms = registry.histogram(
        "kafka_server_addpartitionstotxnmanager_verificationtimems",
        "Milliseconds until a coordinator has said whether a partition may be written to in a transaction.",
    ).child()
    registry.counter_from(
        "kafka_server_addpartitionstotxnmanager_verificationfailurerate_total",
        "Partitions that a coordinator refused to have written to in a transaction.",
        [],
        lambda: [((), broker.verification.failure_count)],
    )
    registry.gauge_from(
        "kafka_server_transaction_coordinator_metrics_partition_load_time_max",
        "Milliseconds that the slowest load of a partition of the transactions' topic took.",
        [],
        lambda: [((), max(transactions.load_times_ms(), default=0.0))],
    )
