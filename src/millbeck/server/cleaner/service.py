"""Decides which log is compacted next, has it done beside the broker, and puts the result in its place.

As many logs at a time as ``log.cleaner.threads`` says; a thread here is a task of the loop that looks for the dirtiest
log, waits for a worker process to compact it, and rests when none is worth it. The order of what becomes durable: the
new segments (by the worker), their place in the log (`storage.swap`), the cleaner's checkpoint.

A run ends early when its partition is deleted, goes offline or is no longer compacted, and when the node stops; what it
has written is removed. A log that cannot be compacted (damage, a read that failed, something unexpected) is left alone
until the next start: it is said in the log and counted in the metrics. A full disk, and a worker that was killed, are
tried again.

What compaction itself takes is loaded when there is a compacted log: a node starts without it.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from typing import TYPE_CHECKING, Final, cast

from millbeck.kernel.environment import WorkerDied, WorkStopped
from millbeck.kernel.errors import ApiError, KafkaStorageError
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.units import MIB
from millbeck.replication.partition import Partition
from millbeck.server.broker import Broker
from millbeck.server.cleaner.checkpoint import CleanerCheckpoint
from millbeck.server.cleaner.run import CleanerRun
from millbeck.server.cleaner.statistics import CleanerStatistics
from millbeck.server.turns import Turns
from millbeck.storage.directory import LogDirectory

if TYPE_CHECKING:
    from millbeck.storage.compaction.job import Outcome
    from millbeck.storage.compaction.plan import Plan, Survey

DEATHS_MAX: Final = 3
"""A log whose workers died so often in a row is at fault itself: it may need more memory than there is."""
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
STOP_SECONDS_MAX: Final = 10.0
POLL_SECONDS: Final = 0.01
RETRY_SECONDS_MAX: Final = 60.0

log = logging.getLogger(__name__)


class Cleaner:
    def __init__(self, broker: Broker) -> None:
        self.statistics = CleanerStatistics()
        self.running: dict[TopicPartition, CleanerRun] = {}
        self.uncleanable: dict[TopicPartition, str] = {}
        """Why, by partition."""
        self.dirty_ratios: dict[TopicPartition, float] = {}
        """Of all compacted logs, when they were last looked at."""
        self._broker = broker
        self._checkpoints: dict[LogDirectory, CleanerCheckpoint] = {}
        self._saving = asyncio.Lock()
        self._deaths: dict[TopicPartition, int] = {}
        self._resting: dict[TopicPartition, tuple[float, float]] = {}
        """Logs that are tried again later: when, and how long they rest the next time."""
        self._threads: dict[int, asyncio.Task[None]] = {}
        self._failing: set[int] = set()
        """The threads whose last round ended in an error that should not happen."""
        self._bell = asyncio.Event()
        self._is_started = False

    # the node's side

    def start(self) -> None:
        """Begin, unless ``log.cleaner.enable`` is off."""
        if not self._broker.config.cleaner.log_cleaner_enable:
            log.warning("log.cleaner.enable is false: compacted topics grow without bound")
            return
        self._is_started = True
        self.apply_config()

    def apply_config(self) -> None:
        """Settings of the node or of its topics have changed."""
        if not self._is_started:
            return
        for number in range(self._broker.config.cleaner.log_cleaner_threads):
            if number not in self._threads:
                self._threads[number] = cast("asyncio.Task[None]", self._broker.spawn(self._serve(number)))
        for run in self.running.values():
            if not run.log.config.is_compacted:
                run.stop()
        self._share_rate()
        self._bell.set()

    def partition_gone(self, name: TopicPartition) -> None:
        """Its log was deleted, or another of its name is about to be made: forget what was known of it."""
        self._stop_run(name)
        self.uncleanable.pop(name, None)
        self.dirty_ratios.pop(name, None)
        self._deaths.pop(name, None)
        self._resting.pop(name, None)
        for checkpoint in self._all_checkpoints():
            checkpoint.forget(name)
        self._save_soon()

    async def partition_truncated(self, name: TopicPartition, offset: int) -> None:
        """Its log is being cut at ``offset``: a run over it must not go on, and what comes there next is dirty.

        Call it before the cut and after it; the checkpoint on disk says so when this returns. Records that took the
        place of clean ones would be taken for clean otherwise, and a tombstone among them go before what it deletes.
        """
        self._stop_run(name)
        for checkpoint in self._all_checkpoints():
            checkpoint.lower(name, offset)
        await self._save_checkpoints()

    def partition_moved(self, name: TopicPartition, source: LogDirectory, target: LogDirectory) -> None:
        """Its log lies in another directory now, with the same records."""
        self._all_checkpoints()
        known = self._checkpoints.get(source)
        offset = None if known is None else known.offset_of(name)
        for directory, checkpoint in self._checkpoints.items():
            if directory is target and offset is not None:
                checkpoint.note(name, offset)
            else:
                checkpoint.forget(name)
        self._save_soon()

    async def leave_alone(self, partition: Partition) -> None:
        """A copy of its log is about to be made; returns when no run touches it any more.

        Were it compacted meanwhile, the copy could hold an old record and lack the tombstone that came after it.
        """
        self._stop_run(partition.name)
        while partition.name in self.running:
            await asyncio.sleep(POLL_SECONDS)

    def look_for_offline_logs(self) -> None:
        """A directory has failed: end what is done to its logs."""
        for run in self.running.values():
            if run.log.is_offline:
                run.stop()

    async def stop(self) -> None:
        """End every run; nothing touches the logs any more when this returns."""
        self._is_started = False
        self._bell.set()
        for run in self.running.values():
            run.stop()
        tasks = list(self._threads.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS_MAX)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._threads.clear()
        await self._save_checkpoints()
        self._broker.environment.workers.close()

    def _stop_run(self, name: TopicPartition) -> None:
        run = self.running.get(name)
        if run is not None:
            run.stop()

    # looking at logs

    @property
    def dead_thread_count(self) -> int:
        """Threads that get nothing done: they ended although nobody asked them to, or fail whatever they try."""
        if not self._is_started:
            return 0
        return sum(task.done() or number in self._failing for number, task in self._threads.items())

    def survey(self, partition: Partition) -> Survey | None:
        """How dirty a partition's log is now; None when it is not compacted or cannot be looked at."""
        if not partition.log.config.is_compacted or partition.log.is_offline:
            return None
        checkpoint = self._checkpoint_of(partition.name)
        if checkpoint is None:
            return None
        from millbeck.storage.compaction import plan as planning

        found = planning.survey(
            partition.log,
            checkpoint=checkpoint.offset_of(partition.name),
            high_watermark=partition.high_watermark,
            now_ms=self._broker.now_ms(),
        )
        if found.was_reset:
            checkpoint.forget(partition.name)
        return found

    def uncleanable_by_directory(self) -> dict[str, list[TopicPartition]]:
        """Partitions that are left alone, by the path of their directory; every directory is listed."""
        found: dict[str, list[TopicPartition]] = {each.path: [] for each in self._broker.logs.directories}
        for name in self.uncleanable:
            directory = self._broker.logs.directory_of(name)
            if directory is not None:
                found[directory.path].append(name)
        return found

    def uncleanable_bytes(self, name: TopicPartition) -> int:
        """What of a log that is left alone would be compacted; all of it when it cannot be looked at."""
        try:
            partition = self._broker.topics.partition(name.topic, name.partition)
            surveyed = self.survey(partition)
        except (OSError, ApiError):
            return 0
        return partition.log.size_bytes if surveyed is None else surveyed.dirty_bytes

    def _checkpoint_of(self, name: TopicPartition) -> CleanerCheckpoint | None:
        directory = self._broker.logs.directory_of(name)
        if directory is None or directory.offline_reason is not None:
            return None
        return self._checkpoint_in(directory)

    def _all_checkpoints(self) -> list[CleanerCheckpoint]:
        """Of all directories that can be read, also those in which nothing was looked at yet."""
        found = []
        for directory in self._broker.logs.directories:
            if directory.offline_reason is None:
                try:
                    found.append(self._checkpoint_in(directory))
                except OSError as error:
                    log.error("the cleaner's checkpoint of %s cannot be read: %s", directory.path, error)
        return found

    def _checkpoint_in(self, directory: LogDirectory) -> CleanerCheckpoint:
        """Raises OSError when it cannot be read."""
        checkpoint = self._checkpoints.get(directory)
        if checkpoint is None:
            checkpoint = self._checkpoints[directory] = CleanerCheckpoint(
                self._broker.environment.files, directory.path
            )
        return checkpoint

    async def _choose(self) -> tuple[Partition, Survey] | None:
        """The dirtiest log that is worth it, or one whose ``max.compaction.lag.ms`` is over."""
        turns = Turns(self._broker.environment.clock)
        seen: list[Survey] = []
        best: tuple[Partition, Survey] | None = None
        ratios: dict[TopicPartition, float] = {}
        for partition in self._broker.topics.all_partitions():
            await turns.give_way()
            name = partition.name
            if name in self.uncleanable or name in self.running:
                if name in self.dirty_ratios:
                    ratios[name] = self.dirty_ratios[name]
                continue
            try:
                surveyed = self.survey(partition)
            except (OSError, ApiError) as error:
                self._give_up(name, str(error), is_offline=partition.log.is_offline)
                continue
            if surveyed is None:
                continue
            seen.append(surveyed)
            ratios[name] = surveyed.dirty_ratio
            if self._is_copied(partition) or self._is_resting(name):
                continue
            if surveyed.is_worthwhile and (best is None or surveyed.dirty_ratio > best[1].dirty_ratio):
                best = (partition, surveyed)
        self.dirty_ratios = ratios
        self.statistics.looked(seen, self._broker.now_ms())
        return best

    def _is_copied(self, partition: Partition) -> bool:
        return self._broker.replication.moves.of(partition) is not None

    # compacting them

    async def _serve(self, number: int) -> None:
        """One thread: as long as there are so many."""
        while self._is_started and number < self._broker.config.cleaner.log_cleaner_threads:
            is_working = False
            try:
                chosen = await self._choose()
                # Another thread may have been faster while this one gave way, and much may have happened to the log.
                if chosen is not None and self._may_clean(chosen[0]):
                    is_working = await self._clean(number, *chosen)
                self._failing.discard(number)
            except Exception as error:
                self._failing.add(number)
                self._broker.report(error, "the log cleaner")
            if not is_working:
                await self._rest()
        self._threads.pop(number, None)
        self._failing.discard(number)

    def _may_clean(self, partition: Partition) -> bool:
        return self._is_started and partition.name not in self.running and not self._is_copied(partition)

    async def _rest(self) -> None:
        if not self._is_started:
            return
        self._bell.clear()
        seconds = self._broker.config.cleaner.log_cleaner_backoff_ms / 1000
        try:
            async with asyncio.timeout(min(max(seconds, 0.001), 86_400.0)):
                await self._bell.wait()
        except TimeoutError:
            pass

    async def _clean(self, number: int, partition: Partition, surveyed: Survey) -> bool:
        """Compact one log as far as its keys fit the memory; whether it went well."""
        from millbeck.storage.compaction.job import CompactionCancelled, CompactionError, SourceGone

        now = self._broker.environment.clock.monotonic()
        run = self.running[partition.name] = CleanerRun(number, partition.log, surveyed, now)
        self._share_rate()
        try:
            return await self._run(run)
        except (CompactionCancelled, WorkStopped):
            log.info("compaction of %s was stopped", run.name)
        except SourceGone as error:
            log.info("compaction of %s begins anew later: %s", run.name, error)
        except WorkerDied as error:
            self._worker_died(run, error)
        except OSError as error:
            if error.errno in NO_ROOM:
                seconds = self._let_rest(run.name)
                log.warning("no room to compact %s, tried again in %.1f s: %s", run.name, seconds, error)
            else:
                self._give_up(run.name, str(error), is_offline=run.log.is_offline)
        except (CompactionError, KafkaStorageError) as error:
            self._give_up(run.name, str(error), is_offline=run.log.is_offline)
        except Exception as error:
            self._give_up(run.name, repr(error), is_offline=run.log.is_offline)
            self._broker.report(error, f"compaction of {run.name}")
        finally:
            del self.running[run.name]
            self._share_rate()
        return False

    async def _run(self, run: CleanerRun) -> bool:
        plan = self._prepare(run)
        if plan is None:
            return False
        try:
            outcome = await self._work(run, plan)
            await self._install(run, plan, outcome)
        finally:
            plan.release()
        self._deaths.pop(run.name, None)
        self._resting.pop(run.name, None)
        checkpoint = self._checkpoint_of(run.name)
        if checkpoint is not None and not run.is_stopped:
            # One that was stopped may lie over a cut by now: what was done is done, and gone over once more.
            checkpoint.note(run.name, outcome.cleaned_offset)
            await self._save_checkpoints()
        self._tell(run, outcome)
        return True

    def _prepare(self, run: CleanerRun) -> Plan | None:
        from millbeck.storage.compaction import plan as planning

        options = self._broker.config.cleaner
        threads = max(1, options.log_cleaner_threads)
        return planning.prepare(
            run.log,
            run.surveyed,
            now_ms=self._broker.now_ms(),
            map_bytes_max=int(options.log_cleaner_dedupe_buffer_size // threads * self._load_factor()),
            read_bytes=max(1, options.log_cleaner_io_buffer_size // threads),
        )

    def _load_factor(self) -> float:
        return min(1.0, max(0.0, self._broker.config.cleaner.log_cleaner_io_buffer_load_factor))

    async def _work(self, run: CleanerRun, plan: Plan) -> Outcome:
        from millbeck.server.cleaner import work

        environment = self._broker.environment
        order = work.Order(job=plan.job, bytes_per_second=self._rate())
        run.errand = environment.workers.start(
            work.run, order, lambda progress: run.reported(progress, environment.clock.monotonic())
        )
        if run.is_stopped:
            run.errand.stop()
        return await run.errand.result

    async def _install(self, run: CleanerRun, plan: Plan, outcome: Outcome) -> None:
        """Put the new segments in place of the old, durably; a swap that has begun is not stopped."""
        from millbeck.storage.compaction.job import SourceGone
        from millbeck.storage.swap import Swap, SwapState

        swap = Swap(plan, outcome)
        while (job := swap.next_job()) is not None:
            await self._broker.in_thread(job)
        self._broker.logs.remove_later(swap.removals)
        if swap.state is not SwapState.DONE:
            raise run.log.offline_error() if run.log.is_offline else SourceGone("the log has changed meanwhile")

    def _worker_died(self, run: CleanerRun, error: WorkerDied) -> None:
        deaths = self._deaths[run.name] = self._deaths.get(run.name, 0) + 1
        if deaths >= DEATHS_MAX:
            self._give_up(run.name, f"{deaths} workers in a row died of it, the last: {error}", is_offline=False)
        else:
            seconds = self._let_rest(run.name)
            log.warning("compaction of %s is tried again in %.1f s: %s", run.name, seconds, error)

    def _let_rest(self, name: TopicPartition) -> float:
        """Give the others their turn before it is tried again, and a disk time to get room; returns the seconds."""
        _, seconds = self._resting.get(name, (0.0, self._broker.config.cleaner.log_cleaner_backoff_ms / 1000))
        self._resting[name] = (
            self._broker.environment.clock.monotonic() + seconds,
            min(max(2 * seconds, 0.1), RETRY_SECONDS_MAX),
        )
        return seconds

    def _is_resting(self, name: TopicPartition) -> bool:
        return name in self._resting and self._broker.environment.clock.monotonic() < self._resting[name][0]

    def _give_up(self, name: TopicPartition, reason: str, *, is_offline: bool) -> None:
        """Leave a log alone until the next start. One that is offline or gone says so itself."""
        if is_offline or self._broker.logs.directory_of(name) is None:
            return
        self.uncleanable[name] = reason
        log.error("%s cannot be compacted and is left alone until the next start: %s", name, reason)

    def _tell(self, run: CleanerRun, outcome: Outcome) -> None:
        did = outcome.statistics
        seconds = self._broker.environment.clock.monotonic() - run.began
        self.statistics.ran(run.thread, seconds, run.surveyed, did)
        log.info(
            "compacted %s up to %d: %.1f MiB became %.1f MiB in %.1f s, %d of %d records dropped",
            run.name,
            outcome.cleaned_offset,
            did.bytes_read / MIB,
            did.bytes_written / MIB,
            seconds,
            did.records_dropped,
            did.records_read,
        )

    # the throttle

    def _rate(self) -> float:
        """Of ``log.cleaner.io.max.bytes.per.second``, the share of one run."""
        # Nothing keeps it from being set to 0, which is to say: hardly at all.
        rate = max(1.0, self._broker.config.cleaner.log_cleaner_io_max_bytes_per_second)
        return rate / max(1, len(self.running))

    def _share_rate(self) -> None:
        rate = self._rate()
        for run in self.running.values():
            if run.errand is not None:
                run.errand.tell(rate)

    # the checkpoint

    def _save_soon(self) -> None:
        if any(checkpoint.is_changed for checkpoint in self._checkpoints.values()):
            self._broker.spawn(self._save_checkpoints())

    async def _save_checkpoints(self) -> None:
        async with self._saving:
            for directory, checkpoint in list(self._checkpoints.items()):
                if checkpoint.is_changed and directory.offline_reason is None:
                    try:
                        await self._broker.in_thread(checkpoint.job())
                    except OSError as error:
                        checkpoint.is_changed = True
                        log.error("the cleaner's checkpoint of %s is not written: %s", directory.path, error)
