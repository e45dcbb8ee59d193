"""Metrics of the transactions that this broker coordinates: states, pending markers, and write verification."""

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

    registry.callback_gauge("millbeck_transactional_ids", "Transactional ids by state.", ["state"], by_state)
    prefix = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
    sender = transactions.sender
    registry.callback_gauge(
        f"{prefix}unknowndestinationqueuesize",
        "Pending transaction markers for partitions without a leader.",
        [],
        lambda: [((), sender.leaderless_count)],
    )
    registry.callback_gauge(
        f"{prefix}logappendretryqueuesize",
        "Ending transactions whose markers or completion are not written yet.",
        [],
        lambda: [((), sender.run_count)],
    )
    broker.verification.times_ms = registry.histogram(
        "kafka_server_addpartitionstotxnmanager_verificationtimems",
        "Milliseconds until the coordinator has verified a transactional write.",
    ).child()
    registry.callback_counter(
        "kafka_server_addpartitionstotxnmanager_verificationfailurerate_total",
        "Partitions whose transactional write the coordinator rejected or could not verify.",
        [],
        lambda: [((), broker.verification.failure_count)],
    )
    registry.callback_gauge(
        "kafka_server_transaction_coordinator_metrics_partition_load_time_max",
        "Maximum duration in milliseconds of loading a partition of __transaction_state.",
        [],
        lambda: [((), max(transactions.load_times_ms(), default=0.0))],
    )
