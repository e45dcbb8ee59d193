"""A worker whose tasks run in the tests' Spark session, and requests to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from millbeck.host import real_environment
from millbeck.pipeline.connect.rest.answers import Decision, Request, RestError
from millbeck.pipeline.connect.rest.routes import Checked, GroupRead, Routes
from millbeck.pipeline.connect.worker.config import parse
from millbeck.pipeline.connect.worker.member import Member
from millbeck.pipeline.connect.worker.spark_engine import SparkEngine

if TYPE_CHECKING:
    from types import TracebackType

    from pyspark.sql import SparkSession

T = TypeVar("T")

_WAIT_SECONDS = 60.0
_ABANDONED: list[object] = []
"""What workers that have vanished leave behind."""
STRINGS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}


class LiveWorker:
    """A cluster of workers, of which one runs at a time, and only while a method is called."""

    def __init__(self, spark: SparkSession, bootstrap: str, **settings: str) -> None:
        name = f"c-{uuid4().hex[:8]}"
        self.settings = {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "config.storage.topic": f"{name}-configs",
            "offset.storage.topic": f"{name}-offsets",
            "offset.storage.partitions": "2",
            "status.storage.topic": f"{name}-status",
            "status.storage.partitions": "1",
            "millbeck.turn.interval.ms": "100",
            "session.timeout.ms": "2000",
            "heartbeat.interval.ms": "300",
            "millbeck.restart.delay.max.ms": "500",
            **STRINGS,
            **{setting.replace("_", "."): text for setting, text in settings.items()},
        }
        self._spark = spark

    def __enter__(self) -> LiveWorker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()

        async def make() -> Member:
            engine = SparkEngine(lambda: self._spark, interval_s=0.1, owns_session=False)
            member = Member(
                real_environment(), parse(self.settings), engine, worker_id="worker:8083", is_standalone=False
            )
            await member.start()
            return member

        self.member = self.run(make())
        self._routes = Routes(self.member.cluster, cluster_id="")

    def close(self) -> None:
        self.run(self.member.close())
        self._loop.close()

    def vanish(self) -> None:
        """End without a word, as a process that is killed, and start again. Spark's tasks go on."""
        _ABANDONED.extend((self._loop, self.member))
        self.start()

    def run(self, question: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(question)

    def ask(self, method: str, path: str, body: Any = None) -> Decision:
        async def answer() -> Decision:
            found = self._routes.respond(Request(method=method, path=path, body=body))
            if isinstance(found, Checked):
                return found.answered(await self.member.problems(found.settings))
            if isinstance(found, GroupRead):
                return found.answered(await self.member.committed(found.group))
            if found.status < 300:
                try:
                    await self.member.perform(found)
                except RestError as error:
                    return error.decision()
            return found

        return self.run(answer())

    def put(self, name: str, **settings: str) -> None:
        named = {setting.replace("_", "."): text for setting, text in settings.items()}
        answer = self.ask("PUT", f"/connectors/{name}/config", named)
        assert answer.status < 300, answer.body

    def states(self, name: str) -> list[str]:
        """The state of the connector, then those of its tasks."""
        answer = self.ask("GET", f"/connectors/{name}/status")
        if answer.status != 200:
            return []
        return [answer.body["connector"]["state"], *(task["state"] for task in answer.body["tasks"])]

    def until_states(self, name: str, *wanted: str) -> None:
        self.until(lambda: self.states(name) == list(wanted), lambda: f"{name} is {self.states(name)}")

    def until(self, reached: Callable[[], bool], say: Callable[[], object] = lambda: "not in time") -> None:
        """Let the worker work until something is true."""
        ends_s = time.monotonic() + _WAIT_SECONDS
        while not reached():
            assert time.monotonic() < ends_s, say()
            self.run(asyncio.sleep(0.05))
