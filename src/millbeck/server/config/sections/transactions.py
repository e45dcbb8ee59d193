"""Transactions. Checked and listed; the coordinator that reads these comes in a later release."""

from __future__ import annotations

from millbeck.kernel.options import BOOLEAN, INT, SHORT, Importance, Section, Update, at_least, option
from millbeck.kernel.units import DAY_MS, HOUR_MS, MIB


class TransactionOptions(Section):
    timeout_ms_max = option(
        "transaction.max.timeout.ms",
        INT,
        900_000,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The longest timeout a transaction may ask for. Takes effect with transactions, in a later release.",
    )
    id_expiration_ms = option(
        "transactional.id.expiration.ms",
        INT,
        7 * DAY_MS,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How long an unused transactional id is remembered. Takes effect with transactions, in a later release.",
    )
    abort_check_interval_ms = option(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How often transactions that took too long are aborted. Takes effect with transactions.",
    )
    expiration_check_interval_ms = option(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        1 * HOUR_MS,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How often unused transactional ids are removed. Takes effect with transactions.",
    )
    verifies_partitions = option(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        update=Update.CLUSTER_WIDE,
        importance=Importance.LOW,
        doc="Whether a transactional write asks the coordinator about its partition first. Takes effect with "
        "transactions.",
    )
    two_phase_commit_enable = option(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        importance=Importance.LOW,
        doc="Whether transactions without a timeout, for two-phase commit, are allowed. Takes effect with "
        "transactions.",
    )
    add_partitions_retry_backoff_ms = option(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        20,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The first rest before a partition is offered to the coordinator again. Takes effect with transactions.",
    )
    add_partitions_retry_backoff_ms_max = option(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="The longest such rest. Takes effect with transactions.",
    )


class TransactionTopicOptions(Section):
    """How ``__transaction_state`` is made and loaded."""

    partition_count = option(
        "transaction.state.log.num.partitions",
        INT,
        50,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Partitions of the topic that holds transactions. Takes effect with transactions.",
    )
    replication_factor = option(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Copies of each of its partitions. Takes effect with transactions.",
    )
    min_insync_replicas = option(
        "transaction.state.log.min.isr",
        INT,
        2,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How many of those must be in sync for a write. Takes effect with transactions.",
    )
    segment_bytes = option(
        "transaction.state.log.segment.bytes",
        INT,
        100 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Its segment size. Takes effect with transactions.",
    )
    load_buffer_bytes = option(
        "transaction.state.log.load.buffer.size",
        INT,
        5 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How much of it is read at once while it is loaded. Takes effect with transactions.",
    )
