"""Which shares travel in which job, and what becomes of those that a job has lost. Without Java."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from millbeck.pipeline.connect.connectors.interface import SourceShare
from millbeck.pipeline.connect.tasks.work import FailureKind, Outcome, TaskSettings, Work

pytest.importorskip("pyspark", reason="the extra connect-worker is not installed")

from millbeck.pipeline.connect.worker.spark_engine import SparkEngine


class _Engine(SparkEngine):
    """Its jobs report tasks, but those whose payload is "lost"; "wait" waits until ``go`` is set."""

    def __init__(self, **options: Any) -> None:
        context = SimpleNamespace(accumulator=lambda inbox, param: None)
        session: Any = SimpleNamespace(sparkContext=context)
        super().__init__(lambda: session, interval_s=0.02, owns_session=False, **options)
        self.jobs: list[list[str]] = []
        self.go = threading.Event()

    def _run(self, session: Any, shares: Any) -> None:
        payloads = [pickle.loads(share.payload).share.payload for share in shares]
        self.jobs.append(payloads)
        if "wait" in payloads:
            self.go.wait(10)
        for share, payload in zip(shares, payloads, strict=True):
            if payload != "lost":
                outcome = Outcome(task=share.task, record_count=len(payload))
                self._deliver_threadsafe([(share.number, pickle.dumps(outcome))])
        if "lost" in payloads:
            raise RuntimeError("executor gone\nand much more")

    async def _check_java(self) -> None:
        pass


def _work(payload: str, name: str = "c") -> Work:
    settings = TaskSettings(
        name=name,
        class_name="C",
        implementation="m:C",
        settings={},
        converters={},
        tasks_max=1,
        client={},
        producer={},
        consumer={},
    )
    return Work(settings=settings, task=3, share=SourceShare(payload=payload))


def _run(scenario: Callable[[_Engine], Awaitable[None]], **options: Any) -> _Engine:
    made: list[_Engine] = []

    async def main() -> None:
        made.append(_Engine(**options))
        async with asyncio.timeout(20):
            await scenario(made[0])
        made[0].go.set()
        await made[0].close()

    asyncio.run(main())
    return made[0]


def test_small_shares_of_different_connectors_travel_together() -> None:
    async def scenario(engine: _Engine) -> None:
        futures = [engine.submit(_work(text, text), is_long=False) for text in ("a", "bb", "ccc")]
        assert [outcome.record_count for outcome in await asyncio.gather(*futures)] == [1, 2, 3]

    engine = _run(scenario)
    assert engine.jobs == [["a", "bb", "ccc"]]
    assert engine.job_count == 1
    assert not engine._open


def test_a_long_share_has_a_job_of_its_own_and_leaves_room_for_small_ones() -> None:
    async def scenario(engine: _Engine) -> None:
        first = engine.submit(_work("wait"), is_long=True)
        second = engine.submit(_work("long"), is_long=True)
        small = engine.submit(_work("small"), is_long=False)
        assert (await small).record_count == 5
        assert not second.done()
        engine.go.set()
        await asyncio.gather(first, second)

    assert sorted(map(str, _run(scenario, long_max=1).jobs)) == ["['long']", "['small']", "['wait']"]


def test_what_a_job_has_not_reported_is_lost() -> None:
    async def scenario(engine: _Engine) -> None:
        kept, lost = [engine.submit(_work(text), is_long=False) for text in ("kept", "lost")]
        assert (await kept).failure is None
        failure = (await lost).failure
        assert failure is not None
        assert failure.kind is FailureKind.LOST
        assert failure.message == "the task was lost: RuntimeError: executor gone"

    assert not _run(scenario)._open


def test_a_share_that_was_given_up_before_it_began_is_not_run() -> None:
    async def scenario(engine: _Engine) -> None:
        given_up = engine.submit(_work("given up"), is_long=False)
        given_up.cancel()
        await engine.submit(_work("kept"), is_long=False)

    engine = _run(scenario)
    assert engine.jobs == [["kept"]]
    assert not engine._open


def test_a_session_that_does_not_start_is_tried_again() -> None:
    async def scenario(engine: _Engine) -> None:
        make = engine._make_session

        def broken() -> Any:
            raise OSError("no Java")

        engine._make_session = broken
        failure = (await engine.submit(_work("a"), is_long=False)).failure
        assert failure is not None
        assert "no Java" in failure.message
        engine._make_session = make
        assert (await engine.submit(_work("a"), is_long=False)).failure is None

    _run(scenario)
