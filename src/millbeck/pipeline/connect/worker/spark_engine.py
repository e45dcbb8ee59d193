"""Needs pyspark: runs shares as tasks of Spark jobs, in one session that is started when the first share comes.

Small shares of all connectors that come within ``interval_s`` travel in one job, a task each; a long share has a job of
its own. Tasks report through an accumulator, whose updates arrive when a task ends, not when its job does: a slow share
holds up nobody else. A job that fails has lost the shares that have not reported. When Java itself has died, the next
job starts a new one.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from millbeck.kernel.extras import needs_extra
from millbeck.pipeline.connect.tasks.running import run_work
from millbeck.pipeline.connect.tasks.work import FailureKind, Outcome, ShareFailure, Work

with needs_extra("spark"):
    from pyspark import AccumulatorParam, SparkContext
    from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark import Accumulator

log = logging.getLogger(__name__)

JOBS_MAX: Final = 16
SHARES_PER_JOB_MAX: Final = 64
_POOL: Final = "spark.scheduler.pool"
_SHARED_POOL: Final = "connect-shared"
_MESSAGE_MAX: Final = 1000

Reports = list[tuple[int, bytes]]


class _Inbox:
    """The driver's side of the accumulator."""

    def __init__(self, deliver: Callable[[Reports], None]) -> None:
        self.deliver = deliver


class _ReportParam(AccumulatorParam):  # type: ignore[type-arg,unused-ignore]
    """Adds up to a list in a task; on the driver, each task's list is delivered."""

    def zero(self, value: Any) -> Any:
        return []

    def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802
        if isinstance(value1, _Inbox):
            value1.deliver(value2)
            return value1
        value1.extend(value2)
        return value1


class _Waiting(NamedTuple):
    number: int
    payload: bytes
    task: int
    future: asyncio.Future[Outcome]
    pool: str


class SparkEngine:
    """Create it inside a running event loop. ``make_session`` is called on a thread; `close` stops the session, unless
    it is somebody else's."""

    def __init__(
        self,
        make_session: Callable[[], SparkSession],
        *,
        interval_s: float,
        jobs_max: int = JOBS_MAX,
        owns_session: bool = True,
        long_max: int = 1,
    ) -> None:
        """``long_max`` is how many long shares run at the same time: fewer than there are processes, so that small
        ones find one."""
        self._make_session = make_session
        self._interval_s = interval_s
        self._owns_session = owns_session
        self._long = asyncio.Semaphore(long_max)
        self._loop = asyncio.get_running_loop()
        self._jobs = ThreadPoolExecutor(jobs_max, thread_name_prefix="connect-job")
        self._starting = ThreadPoolExecutor(1, thread_name_prefix="connect-session")
        self._session: asyncio.Task[SparkSession] | None = None
        self._reports: Accumulator[Any] | None = None
        self._numbers = count()
        self._gathered: list[_Waiting] = []
        self._open: dict[int, _Waiting] = {}
        self._gathering: asyncio.TimerHandle | None = None
        self._running: dict[asyncio.Task[None], None] = {}
        self._last_job_s = 0.0
        self.job_count = 0

    @property
    def has_session(self) -> bool:
        return self._session is not None and self._session.done()

    def submit(self, work: Work, *, is_long: bool) -> asyncio.Future[Outcome]:
        future: asyncio.Future[Outcome] = self._loop.create_future()
        waiting = _Waiting(
            next(self._numbers), pickle.dumps(work), work.task, future, work.settings.name if is_long else _SHARED_POOL
        )
        self._open[waiting.number] = waiting
        if is_long:
            self._start(self._long_job(waiting))
            return future
        self._gathered.append(waiting)
        if len(self._gathered) >= SHARES_PER_JOB_MAX:
            self._flush()
        elif self._gathering is None:
            # At once when nothing was started lately: an only connector does not wait for others.
            due_s = max(self._loop.time() + 0.01, self._last_job_s + self._interval_s)
            self._gathering = self._loop.call_at(due_s, self._flush)
        return future

    def _flush(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        gathered, self._gathered = self._still_wanted(self._gathered), []
        if gathered:
            self._last_job_s = self._loop.time()
            self._start(self._job(gathered))

    def _start(self, job: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(job)
        self._running[task] = None
        task.add_done_callback(lambda done: self._running.pop(done, None))

    async def _long_job(self, share: _Waiting) -> None:
        async with self._long:
            wanted = self._still_wanted([share])
            if wanted:
                await self._job(wanted)

    def _still_wanted(self, shares: list[_Waiting]) -> list[_Waiting]:
        """Without those that were given up before they began."""
        for share in shares:
            if share.future.done():
                self._open.pop(share.number, None)
        return [share for share in shares if not share.future.done()]

    async def _job(self, shares: list[_Waiting]) -> None:
        self.job_count += 1
        try:
            session = await self._started()
            await self._loop.run_in_executor(self._jobs, self._run, session, shares)
            message = "the job has ended without a report of this task"
        except Exception as error:
            # Java's trace is long, and its first line says it.
            message = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:_MESSAGE_MAX]}"
            log.debug("a job of %d shares failed", len(shares), exc_info=error)
            await self._check_java()
        # Reports of tasks that have ended were delivered before the job did.
        for share in shares:
            if not share.future.done():
                failure = ShareFailure(kind=FailureKind.LOST, message=f"the task was lost: {message}")
                share.future.set_result(Outcome(task=share.task, failure=failure))
            self._open.pop(share.number, None)

    def _run(self, session: SparkSession, shares: list[_Waiting]) -> None:
        context = session.sparkContext
        context.setLocalProperty(_POOL, shares[0].pool)
        assert self._reports is not None
        items = [(share.number, share.payload) for share in shares]
        context.parallelize(items, len(items)).foreachPartition(partial(_run_partition, self._reports))

    async def _started(self) -> SparkSession:
        if self._session is None:
            self._session = asyncio.create_task(self._start_session())
        try:
            return await asyncio.shield(self._session)
        except Exception:
            self._session = None
            raise

    async def _start_session(self) -> SparkSession:
        session = await self._loop.run_in_executor(self._starting, self._make_session)
        self._reports = session.sparkContext.accumulator(_Inbox(self._deliver_threadsafe), _ReportParam())
        return session

    async def _check_java(self) -> None:
        """Forget the session if its Java process is gone."""
        if self._session is None or not self._session.done() or self._session.exception() is not None:
            return
        session = self._session.result()
        if not await self._loop.run_in_executor(self._starting, _is_alive, session):
            log.warning("Spark's Java process has ended: another one is started")
            self._session = None
            await self._loop.run_in_executor(self._starting, _forget, session)

    def _deliver_threadsafe(self, reports: Reports) -> None:
        try:
            self._loop.call_soon_threadsafe(self._deliver, reports)
        except RuntimeError:
            # The worker has ended.
            pass

    def _deliver(self, reports: Reports) -> None:
        for number, payload in reports:
            waiting = self._open.pop(number, None)
            if waiting is not None and not waiting.future.done():
                waiting.future.set_result(pickle.loads(payload))

    async def close(self) -> None:
        """Give up what runs, and end the session."""
        self._flush_nothing()
        session = None
        if self._session is not None and self._session.done() and self._session.exception() is None:
            session = self._session.result()
        if session is not None and self._owns_session:
            await self._loop.run_in_executor(self._starting, _stop, session)
        for task in list(self._running):
            task.cancel()
        self._jobs.shutdown(wait=False, cancel_futures=True)
        self._starting.shutdown(wait=False)

    def _flush_nothing(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()


def _run_partition(reports: Accumulator[Any], items: Iterator[tuple[int, bytes]]) -> None:
    """In a task."""
    for number, payload in items:
        outcome = run_work(pickle.loads(payload))
        try:
            stored = pickle.dumps(outcome)
        except Exception as error:
            message = f"what the share gives cannot be pickled: {error}"
            failure = ShareFailure(kind=FailureKind.FATAL, message=message)
            stored = pickle.dumps(Outcome(task=outcome.task, failure=failure))
        reports.add([(number, stored)])


def _is_alive(session: SparkSession) -> bool:
    try:
        return not bool(session.sparkContext._jsc.sc().isStopped())
    except Exception:
        return False


def _stop(session: SparkSession) -> None:
    try:
        session.stop()
    except Exception as error:
        log.debug("Spark's session could not be stopped: %s", error)


def _forget(session: SparkSession) -> None:
    """Make pyspark forget a Java process that is gone, so that a new one can be started."""
    gateway = SparkContext._gateway
    _stop(session)
    if gateway is not None:
        try:
            gateway.shutdown()
        except Exception as error:
            log.debug("the connection to Java could not be closed: %s", error)
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
