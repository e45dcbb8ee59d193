"""Options of transactions and the transaction coordinator."""

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
        doc="The maximum transaction timeout that a producer may request.",
    )
    id_expiration_ms = option(
        "transactional.id.expiration.ms",
        INT,
        7 * DAY_MS,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="An unused transactional id expires after this time.",
    )
    abort_check_interval_ms = option(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The interval between checks for transactions to abort because of their timeout.",
    )
    expiration_check_interval_ms = option(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        1 * HOUR_MS,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The interval between removals of expired transactional ids.",
    )
    verifies_partitions = option(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        update=Update.CLUSTER_WIDE,
        importance=Importance.LOW,
        doc="Whether the transaction coordinator verifies that a partition is part of the transaction before a "
        "transactional write.",
    )
    two_phase_commit_enable = option(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        importance=Importance.LOW,
        doc="Whether two-phase commit, with transactions that never time out, is allowed.",
    )
    add_partitions_retry_backoff_ms = option(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        20,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The initial backoff before adding a partition to a transaction is retried.",
    )
    add_partitions_retry_backoff_ms_max = option(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="The maximum of that backoff.",
    )


class TransactionTopicOptions(Section):
    """Options of the topic ``__transaction_state``."""

    partition_count = option(
        "transaction.state.log.num.partitions",
        INT,
        50,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The number of partitions of the transaction state topic.",
    )
    replication_factor = option(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The replication factor of the transaction state topic.",
    )
    min_insync_replicas = option(
        "transaction.state.log.min.isr",
        INT,
        2,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The min.insync.replicas of the transaction state topic.",
    )
    segment_bytes = option(
        "transaction.state.log.segment.bytes",
        INT,
        100 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The segment size of the transaction state topic.",
    )
    load_buffer_bytes = option(
        "transaction.state.log.load.buffer.size",
        INT,
        5 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The read buffer size for loading the transaction state topic.",
    )
