"""Runs one share in a task. It never raises: what fails is in the `Outcome`."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.kernel.errors import InvalidRecord, InvalidTopic, MessageTooLarge, PolicyViolation, TopicAlreadyExists
from millbeck.pipeline.connect.connectors.interface import (
    RejectedRecord,
    SinkConnector,
    SinkShare,
    SourceConnector,
    SourceProgress,
    SourceShare,
)
from millbeck.pipeline.connect.errors import ConnectError, RetriableError
from millbeck.pipeline.connect.model.record import SourceRecord
from millbeck.pipeline.connect.tasks.process import LogClient, Prepared, client_of, forget, prepared
from millbeck.pipeline.connect.tasks.sink_records import LOGGED_MAX, ShareRecords
from millbeck.pipeline.connect.tasks.tolerance import RecordFailed, Retries, Stage, java_class_of, trace_of
from millbeck.pipeline.connect.tasks.topic_creation import TopicCreation
from millbeck.pipeline.connect.tasks.work import FailureKind, Outcome, ShareFailure, Work

log = logging.getLogger(__name__)

_AUTHORIZATION: Final = "AuthorizationFailed"
_REFUSALS: Final = (MessageTooLarge, InvalidRecord, InvalidTopic, PolicyViolation)
"""What brokers will say again, however often they are asked."""
_MESSAGE_MAX: Final = 2000


def run_work(work: Work) -> Outcome:
    """Read or write the share."""
    runner: _SourceRun | _SinkRun | None = None
    try:
        found = prepared(work.settings)
        client = client_of(work.settings)
        started_s = client.blocking.environment.clock.monotonic()
        runner = (
            _SourceRun(work, found, client) if isinstance(work.share, SourceShare) else _SinkRun(work, found, client)
        )
        outcome = runner.run()
        seconds = client.blocking.environment.clock.monotonic() - started_s
        return _with(outcome, seconds=seconds)
    except Exception as error:
        # What is wrong with the object's connections, a new object has not.
        forget(work.settings.name)
        return Outcome(task=work.task, failure=failure_of(error, "" if runner is None else runner.place))


def failure_of(error: Exception, place: str = "") -> ShareFailure:
    """How a failure is dealt with: see `connectors.interface`."""
    cause = error.cause if isinstance(error, RecordFailed) else error
    is_refused = isinstance(cause, _REFUSALS) or type(cause).__name__.endswith(_AUTHORIZATION)
    is_fatal = isinstance(error, ConnectError) and not isinstance(error, RetriableError)
    return ShareFailure(
        kind=FailureKind.FATAL if is_fatal or is_refused else FailureKind.RETRIABLE,
        message=f"{java_class_of(cause)}: {str(error)[:_MESSAGE_MAX]}",
        trace=trace_of(error),
        place=place,
    )


def _with(outcome: Outcome, **changes: Any) -> Outcome:
    from dataclasses import replace

    return replace(outcome, **changes)


class _SourceRun:
    def __init__(self, work: Work, found: Prepared, client: LogClient) -> None:
        self._work = work
        self._prepared = found
        self._client = client
        self.place = ""
        self._offsets: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {}
        self._skipped_count = 0
        self._logged: list[str] = []

    def run(self) -> Outcome:
        connector, share, client = self._prepared.connector, self._work.share, self._client
        assert isinstance(connector, SourceConnector)
        assert isinstance(share, SourceShare)
        environment = client.blocking.environment
        retries = Retries(self._prepared.policy, environment.clock.monotonic, _sleeper(client))
        writer = client.writer(self._work.ticket)
        creation = TopicCreation(self._work.settings.settings) if self._work.settings.creates_topics else None
        conversion = self._prepared.conversion
        read = written = filtered = 0
        for item in connector.read(share):
            if isinstance(item, SourceProgress):
                self._moved(item.partition, item.offset)
                continue
            read += 1
            if isinstance(item, RejectedRecord):
                self._leave_out(
                    RecordFailed(Stage.TASK_POLL, type(connector).__qualname__, item.error), str(item.topic)
                )
                if item.source_partition is not None:
                    self._moved(item.source_partition, item.source_offset)
                continue
            assert isinstance(item, SourceRecord), f"read() gave {type(item).__name__}, not a SourceRecord"
            self.place = str(item.topic)
            encoded = None
            try:
                encoded = retries.run(conversion.encoded, item)
                filtered += encoded is None
            except RecordFailed as error:
                self._leave_out(error, str(item.topic))
            if encoded is not None:
                if creation is not None and not writer.has_seen(encoded.topic):
                    self._make_topic(creation, encoded.topic)
                writer.write(encoded)
                written += 1
            if item.source_partition is not None:
                self._moved(item.source_partition, item.source_offset)
        self.place = ""
        writer.finish()
        return Outcome(
            task=self._work.task,
            record_count=written,
            read_count=read,
            filtered_count=filtered,
            skipped_count=self._skipped_count,
            retry_count=retries.count,
            byte_count=writer.byte_count,
            topics=writer.topics,
            offsets=tuple(self._offsets.values()),
            logged=tuple(self._logged),
        )

    def _moved(self, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> None:
        key = json.dumps(partition, sort_keys=True)
        self._offsets[key] = (dict(partition), None if offset is None else dict(offset))

    def _leave_out(self, failed: RecordFailed, topic: str) -> None:
        policy = self._prepared.policy
        if not policy.tolerates:
            raise failed
        self._skipped_count += 1
        if policy.logs and len(self._logged) < LOGGED_MAX:
            self._logged.append(
                f"{failed.stage.value} of {failed.class_name} failed for {topic}: {java_class_of(failed.cause)}"
                f" {failed.cause}"
            )

    def _make_topic(self, creation: TopicCreation, topic: str) -> None:
        shape = creation.shape(topic)
        if shape is None:
            return
        client = self._client
        new = NewTopic(
            name=topic,
            partition_count=shape.partitions,
            replication_factor=shape.replication_factor,
            configs=dict(shape.configs),
        )

        async def make() -> None:
            async with Admin(dict(self._work.settings.client), environment=client.blocking.environment) as admin:
                if topic in await admin.list_topics():
                    return
                error = (await admin.create_topics([new])).failed.get(topic)
                if error is not None and not isinstance(error, TopicAlreadyExists):
                    raise error

        client.run(make())


class _SinkRun:
    def __init__(self, work: Work, found: Prepared, client: LogClient) -> None:
        assert isinstance(work.share, SinkShare)
        self._work = work
        self._prepared = found
        retries = Retries(found.policy, client.blocking.environment.clock.monotonic, _sleeper(client))
        has_letters = found.policy.tolerates and bool(found.policy.letter_topic)
        letters = client.writer(work.ticket) if has_letters else None
        self._records = ShareRecords(found, work.share, work.task, client, letters, retries)
        self._retries = retries

    @property
    def place(self) -> str:
        return self._records.place

    def run(self) -> Outcome:
        connector, records = self._prepared.connector, self._records
        assert isinstance(connector, SinkConnector)
        assert isinstance(self._work.share, SinkShare)
        result = connector.write(self._work.share, records)
        return Outcome(
            task=self._work.task,
            record_count=records.record_count,
            read_count=records.read_count,
            filtered_count=records.filtered_count,
            skipped_count=records.skipped_count,
            letter_count=records.letter_count,
            retry_count=self._retries.count,
            topics=tuple(dict.fromkeys(found.partition.topic for found in self._work.share.ranges)),
            positions=records.positions(),
            result=result,
            logged=tuple(records.logged),
        )


def _sleeper(client: LogClient) -> Any:
    import asyncio

    return lambda seconds: client.run(asyncio.sleep(seconds))
