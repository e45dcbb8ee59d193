"""Choose the next log to compact, compact it in a worker process, and install the result.

``log.cleaner.threads`` logs are compacted concurrently. A cleaner thread here is an asyncio task that chooses the
dirtiest log, waits for a worker process to compact it, and backs off when no log needs compaction. The order of
durability is: the new segments (by the worker), their swap into the log (`storage.swap`), the cleaner checkpoint.

A run is stopped when its partition is deleted, goes offline or is no longer compacted, and when the node stops; its
output is deleted. A log whose compaction failed (damage, a read error, an unexpected error) is marked uncleanable until
the next start, which is logged and counted in the metrics. After a full disk or a killed worker it is retried.

The compaction modules are imported when there is a compacted log, so that a node starts without them.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from typing import TYPE_CHECKING, Final, cast

from millbeck.kernel.environment import WorkCancelled, WorkerDied
from millbeck.kernel.errors import ApiError, KafkaStorageError
from millbeck.kernel.units import MIB
from millbeck.server.cleaner.checkpoint import CleanerCheckpoint
from millbeck.server.cleaner.run import CleanerRun
from millbeck.server.cleaner.statistics import CleanerStatistics
from millbeck.server.loop.tasks import TimeSlices

if TYPE_CHECKING:
    from millbeck.kernel.ids import TopicPartition
    from millbeck.replication.partition import Partition
    from millbeck.server.replicas.context import ReplicationContext
    from millbeck.storage.compaction.job import CompactionResult
    from millbeck.storage.compaction.plan import CompactionPlan, LogToClean
    from millbeck.storage.directory import LogDirectory

DEATHS_MAX: Final = 3
"""The number of consecutive worker deaths after which a log is marked uncleanable: it may need more memory than is
available."""
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
STOP_SECONDS_MAX: Final = 10.0
POLL_SECONDS: Final = 0.01
RETRY_SECONDS_MAX: Final = 60.0

log = logging.getLogger(__name__)


class Cleaner:
    def __init__(self, broker: ReplicationContext) -> None:
        self.statistics = CleanerStatistics()
        self.running: dict[TopicPartition, CleanerRun] = {}
        self.uncleanable: dict[TopicPartition, str] = {}
        """The partitions marked uncleanable, with the reason."""
        self.dirty_ratios: dict[TopicPartition, float] = {}
        """The dirty ratios of all compacted logs at the last check."""
        self._broker = broker
        self._checkpoints: dict[LogDirectory, CleanerCheckpoint] = {}
        self._saving = asyncio.Lock()
        self._worker_deaths: dict[TopicPartition, int] = {}
        self._backoffs: dict[TopicPartition, tuple[float, float]] = {}
        """Logs in backoff: the time of the next attempt, and the length of the next backoff."""
        self._threads: dict[int, asyncio.Task[None]] = {}
        self._failing: set[int] = set()
        """The cleaner threads whose last attempt failed with an unexpected error."""
        self._wakeup = asyncio.Event()
        self._is_started = False

    # called by the node

    def start(self) -> None:
        """Start the cleaner threads, unless ``log.cleaner.enable`` is false."""
        if not self._broker.config.cleaner.log_cleaner_enable:
            log.warning("log.cleaner.enable is false: compacted topics grow without bound")
            return
        self._is_started = True
        self.apply_config()

    def apply_config(self) -> None:
        """Apply changed broker or topic configurations."""
        if not self._is_started:
            return
        for number in range(self._broker.config.cleaner.log_cleaner_threads):
            if number not in self._threads:
                self._threads[number] = cast("asyncio.Task[None]", self._broker.spawn(self._serve(number)))
        for run in self.running.values():
            if not run.log.config.is_compacted:
                run.stop()
        self._share_rate()
        self._wakeup.set()

    def partition_gone(self, name: TopicPartition) -> None:
        """Forget a partition whose log was deleted, or whose name is about to be reused for a new log."""
        self._stop_run(name)
        self.uncleanable.pop(name, None)
        self.dirty_ratios.pop(name, None)
        self._worker_deaths.pop(name, None)
        self._backoffs.pop(name, None)
        for checkpoint in self._all_checkpoints():
            checkpoint.forget(name)
        self._save_soon()

    async def partition_truncated(self, name: TopicPartition, offset: int) -> None:
        """Stop a run over a log that is truncated to ``offset``, and lower its cleaner checkpoint.

        Must be called before and after the truncation; the checkpoint on disk is lowered when this returns. Otherwise
        records appended after the truncation would count as clean, and a tombstone among them could be removed before
        the record that it deletes.
        """
        self._stop_run(name)
        for checkpoint in self._all_checkpoints():
            checkpoint.lower(name, offset)
        await self._save_checkpoints()

    def partition_moved(self, name: TopicPartition, source: LogDirectory, target: LogDirectory) -> None:
        """Move the cleaner checkpoint of a log that was moved to another directory, with the same records."""
        self._all_checkpoints()
        known = self._checkpoints.get(source)
        offset = None if known is None else known.offset_of(name)
        for directory, checkpoint in self._checkpoints.items():
            if directory is target and offset is not None:
                checkpoint.note(name, offset)
            else:
                checkpoint.forget(name)
        self._save_soon()

    async def abort_and_pause(self, partition: Partition) -> None:
        """Stop the run of a log that is about to be copied; returns when no run uses it any more.

        If it were compacted during the copy, the copy could hold an old record but lack the tombstone after it.
        """
        self._stop_run(partition.name)
        while partition.name in self.running:
            await asyncio.sleep(POLL_SECONDS)

    def on_directory_offline(self) -> None:
        """Stop the runs of the logs in a failed directory."""
        for run in self.running.values():
            if run.log.is_offline:
                run.stop()

    async def stop(self) -> None:
        """Stop every run; no run uses a log any more when this returns."""
        self._is_started = False
        self._wakeup.set()
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

    # choosing logs

    @property
    def dead_thread_count(self) -> int:
        """The number of cleaner threads that ended unexpectedly or whose last attempt failed unexpectedly."""
        if not self._is_started:
            return 0
        return sum(task.done() or number in self._failing for number, task in self._threads.items())

    def survey(self, partition: Partition) -> LogToClean | None:
        """The current dirty range of a partition's log; None when it is not compacted or cannot be read."""
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
        """The uncleanable partitions by the path of their directory; every directory is listed."""
        found: dict[str, list[TopicPartition]] = {each.path: [] for each in self._broker.logs.directories}
        for name in self.uncleanable:
            directory = self._broker.logs.directory_of(name)
            if directory is not None:
                found[directory.path].append(name)
        return found

    def uncleanable_bytes(self, name: TopicPartition) -> int:
        """The dirty bytes of an uncleanable log; its whole size when they cannot be determined, 0 when it is gone."""
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
        """The checkpoints of all readable directories, loaded if necessary."""
        found = []
        for directory in self._broker.logs.directories:
            if directory.offline_reason is None:
                try:
                    found.append(self._checkpoint_in(directory))
                except OSError as error:
                    log.error("could not read the cleaner checkpoint of %s: %s", directory.path, error)
        return found

    def _checkpoint_in(self, directory: LogDirectory) -> CleanerCheckpoint:
        """The checkpoint of a directory, read on first use. Raises OSError."""
        checkpoint = self._checkpoints.get(directory)
        if checkpoint is None:
            checkpoint = self._checkpoints[directory] = CleanerCheckpoint(
                self._broker.environment.files, directory.path
            )
        return checkpoint

    async def _choose(self) -> Partition | None:
        """The dirtiest log that exceeds ``min.cleanable.dirty.ratio`` or whose ``max.compaction.lag.ms`` has passed.

        Its survey may be out of date when this returns: the log may have been truncated since.
        """
        turns = TimeSlices(self._broker.environment.clock)
        seen: list[LogToClean] = []
        best: tuple[Partition, float] | None = None
        ratios: dict[TopicPartition, float] = {}
        for partition in self._broker.topics.all_partitions():
            await turns.yield_to_loop()
            name = partition.name
            if name in self.uncleanable or name in self.running:
                if name in self.dirty_ratios:
                    ratios[name] = self.dirty_ratios[name]
                continue
            surveyed = self._try_survey(partition)
            if surveyed is None:
                continue
            seen.append(surveyed)
            ratios[name] = surveyed.dirty_ratio
            if self._is_copied(partition) or self._is_backing_off(name):
                continue
            if surveyed.is_worthwhile and (best is None or surveyed.dirty_ratio > best[1]):
                best = (partition, surveyed.dirty_ratio)
        self.dirty_ratios = ratios
        self.statistics.looked(seen, self._broker.now_ms())
        return None if best is None else best[0]

    def _try_survey(self, partition: Partition) -> LogToClean | None:
        """As `survey`; a log whose survey fails is marked uncleanable."""
        try:
            return self.survey(partition)
        except (OSError, ApiError) as error:
            self._mark_uncleanable(partition.name, str(error), is_offline=partition.log.is_offline)
        except Exception as error:
            self._mark_uncleanable(partition.name, repr(error), is_offline=partition.log.is_offline)
            self._broker.isolation.failed(("survey", partition.name), error)
        return None

    def _is_copied(self, partition: Partition) -> bool:
        return self._broker.replication.moves.of(partition) is not None

    # compacting

    async def _serve(self, number: int) -> None:
        """The loop of one cleaner thread; ends when ``log.cleaner.threads`` is lowered below its number."""
        while self._is_started and number < self._broker.config.cleaner.log_cleaner_threads:
            is_working = False
            try:
                chosen = await self._choose()
                # While this task yielded, another thread may have taken the log, or it may have been truncated.
                if chosen is not None and self._may_clean(chosen):
                    surveyed = self._try_survey(chosen)
                    if surveyed is not None and surveyed.is_worthwhile:
                        is_working = await self._clean(number, chosen, surveyed)
                self._failing.discard(number)
            except Exception as error:
                self._failing.add(number)
                self._broker.report(error, "the log cleaner")
            if not is_working:
                await self._wait_for_wakeup()
        self._threads.pop(number, None)
        self._failing.discard(number)

    def _may_clean(self, partition: Partition) -> bool:
        return self._is_started and partition.name not in self.running and not self._is_copied(partition)

    async def _wait_for_wakeup(self) -> None:
        if not self._is_started:
            return
        self._wakeup.clear()
        seconds = self._broker.config.cleaner.log_cleaner_backoff_ms / 1000
        try:
            async with asyncio.timeout(min(max(seconds, 0.001), 86_400.0)):
                await self._wakeup.wait()
        except TimeoutError:
            pass

    async def _clean(self, number: int, partition: Partition, surveyed: LogToClean) -> bool:
        """Compact one log as far as its keys fit the dedupe buffer; True on success."""
        from millbeck.storage.compaction.job import CompactionCancelled, CompactionError, SourceRemoved

        now = self._broker.environment.clock.monotonic()
        run = self.running[partition.name] = CleanerRun(number, partition.log, surveyed, now)
        self._share_rate()
        try:
            return await self._run(run)
        except (CompactionCancelled, WorkCancelled):
            log.info("compaction of %s was stopped", run.name)
        except SourceRemoved as error:
            log.info("compaction of %s will start over later: %s", run.name, error)
        except WorkerDied as error:
            self._worker_died(run, error)
        except OSError as error:
            if error.errno in NO_ROOM:
                seconds = self._back_off(run.name)
                log.warning("no disk space to compact %s, retrying in %.1f s: %s", run.name, seconds, error)
            else:
                self._mark_uncleanable(run.name, str(error), is_offline=run.log.is_offline)
        except (CompactionError, KafkaStorageError) as error:
            self._mark_uncleanable(run.name, str(error), is_offline=run.log.is_offline)
        except Exception as error:
            self._mark_uncleanable(run.name, repr(error), is_offline=run.log.is_offline)
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
        self._worker_deaths.pop(run.name, None)
        self._backoffs.pop(run.name, None)
        checkpoint = self._checkpoint_of(run.name)
        if checkpoint is not None and not run.is_stopped:
            # The log of a stopped run may have been truncated: keep the lower checkpoint and compact again.
            checkpoint.note(run.name, outcome.cleaned_offset)
            await self._save_checkpoints()
        self._log_result(run, outcome)
        return True

    def _prepare(self, run: CleanerRun) -> CompactionPlan | None:
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

    async def _work(self, run: CleanerRun, plan: CompactionPlan) -> CompactionResult:
        from millbeck.server.cleaner import work

        environment = self._broker.environment
        order = work.CleanerJob(job=plan.job, bytes_per_second=self._rate())
        run.worker = environment.workers.start(
            work.run, order, lambda progress: run.reported(progress, environment.clock.monotonic())
        )
        if run.is_stopped:
            run.worker.stop()
        return await run.worker.result

    async def _install(self, run: CleanerRun, plan: CompactionPlan, outcome: CompactionResult) -> None:
        """Durably replace the old segments by the new ones; a swap that has begun is not interrupted."""
        from millbeck.storage.compaction.job import SourceRemoved
        from millbeck.storage.swap import Swap, SwapState

        swap = Swap(plan, outcome)
        while (job := swap.next_job()) is not None:
            await self._broker.in_thread(job)
        self._broker.logs.delete_files_later(swap.removals)
        if swap.state is not SwapState.DONE:
            raise (
                run.log.offline_error()
                if run.log.is_offline
                else SourceRemoved("the log has changed during the compaction")
            )

    def _worker_died(self, run: CleanerRun, error: WorkerDied) -> None:
        deaths = self._worker_deaths[run.name] = self._worker_deaths.get(run.name, 0) + 1
        if deaths >= DEATHS_MAX:
            self._mark_uncleanable(run.name, f"{deaths} consecutive workers died, the last: {error}", is_offline=False)
        else:
            seconds = self._back_off(run.name)
            log.warning("compaction of %s will be retried in %.1f s: %s", run.name, seconds, error)

    def _back_off(self, name: TopicPartition) -> float:
        """Back off, so that other logs get compacted and disk space may be freed; returns the delay in seconds."""
        _, seconds = self._backoffs.get(name, (0.0, self._broker.config.cleaner.log_cleaner_backoff_ms / 1000))
        self._backoffs[name] = (
            self._broker.environment.clock.monotonic() + seconds,
            min(max(2 * seconds, 0.1), RETRY_SECONDS_MAX),
        )
        return seconds

    def _is_backing_off(self, name: TopicPartition) -> bool:
        return name in self._backoffs and self._broker.environment.clock.monotonic() < self._backoffs[name][0]

    def _mark_uncleanable(self, name: TopicPartition, reason: str, *, is_offline: bool) -> None:
        """Mark a log as uncleanable until the next start, unless it is offline or gone."""
        if is_offline or self._broker.logs.directory_of(name) is None:
            return
        self.uncleanable[name] = reason
        log.error("%s cannot be compacted and is uncleanable until the next start: %s", name, reason)

    def _log_result(self, run: CleanerRun, outcome: CompactionResult) -> None:
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
        """The share of one run in ``log.cleaner.io.max.bytes.per.second``."""
        # The setting may be 0, which is treated as 1 byte per second.
        rate = max(1.0, self._broker.config.cleaner.log_cleaner_io_max_bytes_per_second)
        return rate / max(1, len(self.running))

    def _share_rate(self) -> None:
        rate = self._rate()
        for run in self.running.values():
            if run.worker is not None:
                run.worker.tell(rate)

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
                        log.error("could not write the cleaner checkpoint of %s: %s", directory.path, error)
