"""The transactions in the logs of a cluster, read batch by batch when the cluster is idle.

T4: a marker matches the decision of its transaction's coordinator, is in a partition that is part of the transaction,
and ends the transaction there; later records begin another one. T5: a producer's epoch never decreases. T8: no
transaction stays open or incomplete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from millbeck.coordinator.transaction.records import decode
from millbeck.coordinator.transaction.status import TransactionState
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch, control
from millbeck.replication.partition import Partition
from millbeck.simulation.histories.history import Anomaly

ORDER = "T4 markers"
FENCING = "T5 fencing"
HANGING = "T8 hanging"
DECISIONS = "T7 decisions"


@dataclass(slots=True)
class TransactionOutcomes:
    """The coordinators' decisions, by producer id and epoch of the markers."""

    made: dict[tuple[int, int], bool] = field(default_factory=dict)
    partitions: dict[tuple[int, int], set[TopicPartition]] = field(default_factory=dict)
    last: dict[str, TransactionState] = field(default_factory=dict)
    anomalies: list[Anomaly] = field(default_factory=list)

    def read(self, partition: Partition) -> None:
        for data in batches_of(partition):
            for record in batch.records_of(data):
                found = None if record.key is None else decode(record.key, record.value)
                if found is not None and found.transaction is not None:
                    self._see(found.transactional_id, found.transaction)

    def _see(self, transactional_id: str, transaction: object) -> None:
        from millbeck.coordinator.transaction.transaction import Transaction

        assert isinstance(transaction, Transaction)
        status = transaction.status
        before = self.last.get(transactional_id)
        self.last[transactional_id] = status
        if before is not None and before.is_prepared:
            wanted = (
                TransactionState.COMPLETE_COMMIT
                if before is TransactionState.PREPARE_COMMIT
                else TransactionState.COMPLETE_ABORT
            )
            if status is not wanted:
                self.anomalies.append(Anomaly(DECISIONS, f"{transactional_id}: {before.shown} became {status.shown}"))
        if status.is_prepared:
            key = (transaction.producer_id, transaction.producer_epoch)
            # Below version 2 one epoch has many transactions, of which the last decision is remembered.
            self.made[key] = status is TransactionState.PREPARE_COMMIT
            self.partitions.setdefault(key, set()).update(transaction.partitions)


def batches_of(partition: Partition) -> Iterator[bytes]:
    log = partition.log
    offset = log.log_start_offset
    while offset < log.end_offset:
        found = log.read(offset, size_bytes_max=1 << 20, upto_offset=log.end_offset)
        if found is None:
            return
        try:
            chunk = found.file.read(found.size, found.position)
        finally:
            found.release()
        for each in batch.split(chunk):
            yield bytes(each.data)
            offset = each.header.next_offset


def check_partition(partition: Partition, decisions: TransactionOutcomes, *, has_epochs: bool) -> list[Anomaly]:
    """Check one partition. With ``has_epochs`` each transaction has its own epoch (transaction.version 2)."""
    anomalies: list[Anomaly] = []
    open_epochs: dict[int, int] = {}
    epochs: dict[int, int] = {}
    for data in batches_of(partition):
        header = batch.read_header(data)
        if header.producer_id < 0:
            continue
        where = f"{partition.name} at {header.base_offset}, producer {header.producer_id}"
        if header.producer_epoch < epochs.get(header.producer_id, -1):
            anomalies.append(Anomaly(FENCING, f"{where}: epoch {header.producer_epoch} after a later one"))
        epochs[header.producer_id] = max(header.producer_epoch, epochs.get(header.producer_id, -1))
        if not header.is_control:
            if header.is_transactional:
                open_epochs.setdefault(header.producer_id, header.producer_epoch)
            continue
        marker = control.decode(batch.records_of(data)[0])
        assert isinstance(marker, control.EndTransaction)
        key = (header.producer_id, header.producer_epoch)
        if key not in decisions.made:
            anomalies.append(Anomaly(ORDER, f"{where}: a marker without a decision"))
        elif has_epochs and decisions.made[key] != marker.committed:
            anomalies.append(Anomaly(ORDER, f"{where}: the marker contradicts the decision"))
        elif partition.name not in decisions.partitions[key]:
            anomalies.append(Anomaly(ORDER, f"{where}: a marker in a partition that is not part of it"))
        began = open_epochs.pop(header.producer_id, None)
        if has_epochs and began is not None and began >= header.producer_epoch:
            anomalies.append(Anomaly(ORDER, f"{where}: the end did not bump the epoch"))
    return anomalies + [
        Anomaly(HANGING, f"{partition.name}: producer {producer_id} has a transaction open")
        for producer_id in open_epochs
    ]


def check_idle(decisions: TransactionOutcomes) -> Iterable[Anomaly]:
    for transactional_id, status in decisions.last.items():
        if not status.is_idle:
            yield Anomaly(HANGING, f"{transactional_id} is left in {status.shown}")
