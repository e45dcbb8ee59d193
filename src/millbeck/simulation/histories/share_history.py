"""The deliveries and acknowledgements of share group members, checked against S1 to S7.

Each record is tracked separately. A member's acknowledgement has taken effect if the broker confirmed it, and may have
taken effect if the response was lost. A fetch sent after a record was confirmed as accepted or rejected must not return
it (S1, S5). Two members cannot both have it accepted (S1, S2). No delivery exceeds the delivery limit (S3). The start
offset of a partition only increases (S4), and no record below it was never delivered (S6). In a group with a
dead-letter topic, every archived record is in that topic at least once, and no accepted record is (S7).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from millbeck.client.share import AcknowledgeType
from millbeck.kernel.ids import TopicPartition
from millbeck.simulation.histories.history import Anomaly

ACCEPTED_TWICE: Final = "accepted twice"
FINAL_REOPENED: Final = "delivered after it was final"
TOO_MANY_DELIVERIES: Final = "delivered more often than the limit"
START_WENT_BACK: Final = "start went back"
SKIPPED: Final = "skipped"
LOST: Final = "never delivered"
LETTER_MISSING: Final = "archived without a dead letter"
LETTER_OF_ACCEPTED: Final = "dead letter of an accepted record"
LETTER_WRONG: Final = "dead letter with a wrong content"
NEVER_DRAINED: Final = "never drained"
VACUOUS: Final = "vacuous"

FINAL_KINDS: Final = (AcknowledgeType.ACCEPT, AcknowledgeType.REJECT)


@dataclass(slots=True)
class RecordFacts:
    deliveries: list[tuple[float, int]] = field(default_factory=list)
    """The time at which the fetch of the delivery was sent, and the delivery count."""
    accepted_by: list[str] = field(default_factory=list)
    may_be_final: bool = False
    """Whether a member has acknowledged it with a final type, confirmed or not, or this was the last delivery."""
    final_s: float | None = None
    """The time at which a member first knew that the record is final."""
    is_rejected: bool = False
    """Whether a rejection was confirmed to a member."""
    may_be_accepted: bool = False
    """Whether a member has accepted it, confirmed or not."""
    letters: int = 0


class ShareHistory:
    def __init__(self, delivery_limit: int) -> None:
        self._limit = delivery_limit
        self._records: dict[tuple[TopicPartition, int], RecordFacts] = {}
        self._starts: dict[TopicPartition, int] = {}
        self.produced: dict[tuple[TopicPartition, int], None] = {}
        """The acknowledged records."""
        self.values: dict[tuple[TopicPartition, int], bytes] = {}
        self.anomalies: list[Anomaly] = []
        self.confirmed_count = 0
        self.redelivered_count = 0
        self.letter_count = 0

    def _of(self, partition: TopicPartition, offset: int) -> RecordFacts:
        return self._records.setdefault((partition, offset), RecordFacts())

    def delivered(self, partition: TopicPartition, offset: int, *, fetched_s: float, delivery_count: int) -> None:
        facts = self._of(partition, offset)
        if delivery_count > self._limit:
            self._found(TOO_MANY_DELIVERIES, partition, offset, f"delivery {delivery_count} of {self._limit}")
        if facts.final_s is not None and fetched_s > facts.final_s:
            self._found(FINAL_REOPENED, partition, offset, f"fetched at {fetched_s}, final since {facts.final_s}")
        self.redelivered_count += bool(facts.deliveries)
        facts.deliveries.append((fetched_s, delivery_count))
        facts.may_be_final = facts.may_be_final or delivery_count >= self._limit

    def acknowledged(self, partition: TopicPartition, offset: int, kind: AcknowledgeType) -> None:
        if kind in FINAL_KINDS:
            self._of(partition, offset).may_be_final = True
        if kind is AcknowledgeType.ACCEPT:
            self._of(partition, offset).may_be_accepted = True

    def confirmed(
        self, member: str, partition: TopicPartition, offset: int, kind: AcknowledgeType, at_s: float
    ) -> None:
        self.confirmed_count += 1
        facts = self._of(partition, offset)
        if kind is AcknowledgeType.ACCEPT:
            facts.accepted_by.append(member)
            if len(facts.accepted_by) > 1:
                self._found(ACCEPTED_TWICE, partition, offset, f"by {facts.accepted_by}")
        facts.is_rejected = facts.is_rejected or kind is AcknowledgeType.REJECT
        if kind in FINAL_KINDS and facts.final_s is None:
            facts.final_s = at_s

    def start_seen(self, partition: TopicPartition, offset: int) -> None:
        if offset < self._starts.get(partition, -1):
            self._found(START_WENT_BACK, partition, offset, f"it was {self._starts[partition]}")
        self._starts[partition] = max(offset, self._starts.get(partition, -1))

    def dead_letter_seen(
        self, partition: TopicPartition, offset: int, *, value: bytes | None, is_rejected: bool, delivery_count: int
    ) -> None:
        """Record a dead letter found in the group's topic at the end, and its contents."""
        facts = self._of(partition, offset)
        facts.letters += 1
        self.letter_count += 1
        if value != self.values.get((partition, offset), value):
            self._found(LETTER_WRONG, partition, offset, f"it has the value {value!r}")
        if not is_rejected and delivery_count < self._limit:
            self._found(LETTER_WRONG, partition, offset, f"delivery {delivery_count} of {self._limit} was the last")

    def check_letters(self) -> None:
        """Check that all records are finished and that all dead letters were found."""
        for (partition, offset), facts in self._records.items():
            if facts.accepted_by and facts.letters:
                self._found(LETTER_OF_ACCEPTED, partition, offset, f"accepted by {facts.accepted_by}")
            is_over = offset < self._starts.get(partition, -1) and not facts.may_be_accepted
            if not facts.letters and (facts.is_rejected or (is_over and facts.deliveries)):
                self._found(LETTER_MISSING, partition, offset, f"deliveries {facts.deliveries}")

    def check(self, *, confirmed_min: int) -> list[Anomaly]:
        """Return all violations, including those that only the final state shows."""
        for partition, offset in self.produced:
            facts = self._records.get((partition, offset))
            if offset < self._starts.get(partition, -1) and (facts is None or not facts.may_be_final):
                self._found(SKIPPED, partition, offset, f"below the start {self._starts[partition]}, but not final")
            elif facts is None or not facts.deliveries:
                self._found(LOST, partition, offset, "it was never delivered")
        if self.confirmed_count < confirmed_min:
            self.anomalies.append(Anomaly(VACUOUS, f"only {self.confirmed_count} acknowledgements were confirmed"))
        return self.anomalies

    def _found(self, kind: str, partition: TopicPartition, offset: int, text: str) -> None:
        self.anomalies.append(Anomaly(kind, f"{partition} offset {offset}: {text}"))
