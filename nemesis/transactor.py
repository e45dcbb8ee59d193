"""Consume, transform, produce, in transactions: `python -m nemesis.transactor BOOTSTRAP SOURCE TARGET FILE OPTIONS`.

A member of a group takes records from SOURCE and writes what it makes of each to the same partition of TARGET, together
with the group's offsets. Some transactions it aborts; some it leaves open and goes on as a new producer of the same
name, which is what a crash looks like to the log. Whatever fails is aborted and done again from the offsets that the
group has; whatever cannot go on is given up for a new producer. FILE gets one line for each transaction and how it
ended. `Transactor.java` does the same with Java's clients.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any, NoReturn

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from nemesis.clients import Notes, until_input_closes

GROUP = "transactors"
CALL_S = 20.0
REWIND_S = 60.0
ABORT_EVERY = 12
ABANDON_EVERY = 90


def transformed(value: bytes) -> bytes:
    """What stands in TARGET for a value of SOURCE: it, and its checksum."""
    return b"%s|%08x" % (value, zlib.crc32(value))


class GivenUp(Exception):
    """This producer cannot go on; a new one of the same name can."""


class Transactor:
    def __init__(
        self,
        bootstrap: str,
        source: str,
        target: str,
        notes: Notes,
        *,
        name: str,
        records_max: int,
        is_over: threading.Event,
    ) -> None:
        self._bootstrap = bootstrap
        self._source = source
        self._target = target
        self._notes = notes
        self._name = name
        self._records_max = records_max
        self._is_over = is_over
        self._count = 0
        self._consumer = self._new_consumer()
        self._stuck: list[Consumer] = []

    def _new_consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "client.id": self._name,
                "group.id": GROUP,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 30_000,
                "fetch.wait.max.ms": 100,
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 500,
                "log_level": 2,
            }
        )

    def run(self) -> None:
        self._consumer.subscribe([self._source])
        while not self._is_over.is_set():
            try:
                self._serve(self._new_producer())
            except GivenUp as reason:
                self._notes.add("given up", str(reason))
                self._rewind()
        self._consumer.close()
        self._notes.add("end", 0, [])

    def _new_producer(self) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "client.id": self._name,
                "transactional.id": self._name,
                "transaction.timeout.ms": 30_000,
                "delivery.timeout.ms": 30_000,
                "linger.ms": 5,
                "retry.backoff.ms": 50,
                "reconnect.backoff.max.ms": 500,
                "socket.timeout.ms": 5000,
                "topic.metadata.refresh.interval.ms": 500,
                "log_level": 2,
            }
        )
        self._insist(lambda: producer.init_transactions(CALL_S))
        return producer

    def _serve(self, producer: Producer) -> None:
        """Transaction after transaction, until it is time to end or this producer is given up."""
        while not self._is_over.is_set():
            messages = [each for each in self._consumer.consume(self._records_max, 0.2) if self._is_record(each)]
            if not messages:
                continue
            self._count += 1
            if self._count % ABANDON_EVERY == 0:
                self._write(producer, messages)
                producer.flush(CALL_S)
                self._notes.add("aborted", len(messages), "abandoned")
                raise GivenUp("a crash in the middle of a transaction")
            try:
                is_committed = self._transact(producer, messages)
            except KafkaException as error:
                self._notes.add("failed", len(messages), str(error.args[0]))
                self._abort(producer, error)
                is_committed = False
            self._notes.add("committed" if is_committed else "aborted", len(messages), "")
            if not is_committed:
                self._rewind()

    def _is_record(self, message: Message) -> bool:
        error = message.error()
        if error is not None:
            self._notes.add("read error", error.name(), error.str())
        return error is None

    def _transact(self, producer: Producer, messages: list[Message]) -> bool:
        """Whether it was committed; False when it was aborted on purpose."""
        self._write(producer, messages)
        ends: dict[int, int] = {}
        for message in messages:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            ends[partition] = offset + 1
        offsets = [TopicPartition(self._source, partition, end) for partition, end in ends.items()]
        metadata = self._consumer.consumer_group_metadata()
        self._insist(lambda: producer.send_offsets_to_transaction(offsets, metadata, CALL_S))
        if self._count % ABORT_EVERY == 0:
            producer.flush(CALL_S)
            self._insist(lambda: producer.abort_transaction(CALL_S))
            return False
        self._insist(lambda: producer.commit_transaction(CALL_S))
        return True

    def _write(self, producer: Producer, messages: list[Message]) -> None:
        producer.begin_transaction()
        for message in messages:
            partition = message.partition()
            assert partition is not None
            producer.produce(self._target, value=transformed(message.value() or b""), partition=partition)

    def _insist(self, call: Callable[[], None]) -> None:
        """Again for as long as the client says that it may be tried again."""
        while True:
            try:
                return call()
            except KafkaException as error:
                if error.args[0].fatal():
                    raise GivenUp(error.args[0].str()) from error
                if not error.args[0].retriable() or self._is_over.is_set():
                    raise

    def _abort(self, producer: Producer, error: KafkaException) -> None:
        if not error.args[0].txn_requires_abort():
            raise GivenUp(error.args[0].str())
        try:
            self._insist(lambda: producer.abort_transaction(CALL_S))
        except KafkaException as again:
            raise GivenUp(again.args[0].str()) from again

    def _rewind(self) -> None:
        """Read on from what the group has committed. Who has been sent away meanwhile has nothing to rewind."""
        deadline_s = time.monotonic() + REWIND_S
        while time.monotonic() < deadline_s:
            try:
                assigned = self._consumer.assignment()
                for place in self._consumer.committed(assigned, CALL_S):
                    # Nothing committed: from the start, which is 0, as nothing is ever deleted here.
                    self._consumer.seek(TopicPartition(place.topic, place.partition, max(place.offset, 0)))
                return
            except KafkaException as error:
                self._notes.add("rewinding", error.args[0].str())
                # What it brings is read again; the client wants to be asked now and then.
                self._consumer.poll(0.1)
            if self._is_over.is_set():
                return
        # librdkafka's consumer has been seen to answer nothing any more, not even that it be closed.
        self._notes.add("replaced", "consumer")
        self._stuck.append(self._consumer)
        self._consumer = self._new_consumer()
        self._consumer.subscribe([self._source])


def main() -> NoReturn:
    bootstrap, source, target, path, text = sys.argv[1:]
    options: dict[str, Any] = json.loads(text)
    with open(path, "w", buffering=1) as out:
        Transactor(bootstrap, source, target, Notes(out), is_over=until_input_closes(), **options).run()
    # Without waiting for consumers that were replaced.
    os._exit(0)


if __name__ == "__main__":
    main()
