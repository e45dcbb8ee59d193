"""Transactions: what producers may ask for, and how the coordinator keeps them."""

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
        doc="The longest timeout a transaction may ask for.",
    )
    id_expiration_ms = option(
        "transactional.id.expiration.ms",
        INT,
        7 * DAY_MS,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How long an unused transactional id is remembered.",
    )
    abort_check_interval_ms = option(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How often transactions that took too long are aborted.",
    )
    expiration_check_interval_ms = option(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        1 * HOUR_MS,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How often unused transactional ids are removed.",
    )
    verifies_partitions = option(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        update=Update.CLUSTER_WIDE,
        importance=Importance.LOW,
        doc="Whether a transactional write asks the coordinator about its partition first.",
    )
    two_phase_commit_enable = option(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        importance=Importance.LOW,
        doc="Whether transactions without a timeout, for two-phase commit, are allowed.",
    )
    add_partitions_retry_backoff_ms = option(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        20,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The first rest before a partition is offered to the coordinator again.",
    )
    add_partitions_retry_backoff_ms_max = option(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="The longest such rest.",
    )


class TransactionTopicOptions(Section):
    """How ``__transaction_state`` is made and loaded."""

    partition_count = option(
        "transaction.state.log.num.partitions",
        INT,
        50,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Partitions of the topic that holds transactions.",
    )
    replication_factor = option(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Copies of each of its partitions.",
    )
    min_insync_replicas = option(
        "transaction.state.log.min.isr",
        INT,
        2,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How many of those must be in sync for a write.",
    )
    segment_bytes = option(
        "transaction.state.log.segment.bytes",
        INT,
        100 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Its segment size.",
    )
    load_buffer_bytes = option(
        "transaction.state.log.load.buffer.size",
        INT,
        5 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How much of it is read at once while it is loaded.",
    )
