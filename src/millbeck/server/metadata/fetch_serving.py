"""What a leader gives to those who follow it: batches of its log, or parts of its snapshot.

A fetch that has nothing to get waits here, until there is something, the high watermark moves past what the asker knows
of it, this node no longer leads, or the time is up. It is looked at again then, because who leads may have changed.
What is not in memory is read on a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import KafkaStorageError, PositionOutOfRange, SnapshotNotFound
from millbeck.metadata.snapshot import SnapshotId
from millbeck.raft import leading
from millbeck.raft.machine import QuorumMachine
from millbeck.raft.messages import FetchAsk, FetchReply, Reply, SnapshotAsk, SnapshotReply
from millbeck.server.drivers import metadata_files
from millbeck.server.drivers.quorum_settings import QuorumSettings
from millbeck.server.off_loop import run_off_loop
from millbeck.storage.log import Log


class FetchServing:
    def __init__(
        self,
        environment: Environment,
        log: Log,
        settings: QuorumSettings,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        answer: Callable[[int, Reply], None],
    ) -> None:
        self._environment = environment
        self._log = log
        self._settings = settings
        self._spawn = spawn
        self._answer = answer
        # Bounded by the connections: each is held by its fetch.
        self._parked: dict[int, tuple[FetchAsk, asyncio.TimerHandle]] = {}

    def serve(self, machine: QuorumMachine, token: int, ask: FetchAsk, *, may_wait: bool = True) -> None:
        refused = leading.refusal_of(machine, ask)
        if refused is not None:
            self._answer(token, refused)
        elif self._log.end_offset > ask.offset:
            self._read(machine, token, ask)
        elif may_wait and machine.high_watermark <= ask.high_watermark:
            delay_s = self._settings.timeouts.fetch_wait_ms_max / 1000
            timer = asyncio.get_running_loop().call_later(delay_s, self._expire, machine, token)
            self._parked[token] = (ask, timer)
        else:
            self._answer(token, self._reply(machine, b""))

    def look_again(self, machine: QuorumMachine) -> None:
        """There is more, more is committed, or this node does not lead any more."""
        if not self._parked:
            return
        parked, self._parked = self._parked, {}
        for token, (ask, timer) in parked.items():
            timer.cancel()
            self.serve(machine, token, ask)

    def close(self) -> None:
        for _, timer in self._parked.values():
            timer.cancel()
        self._parked.clear()

    def _expire(self, machine: QuorumMachine, token: int) -> None:
        parked = self._parked.pop(token, None)
        if parked is not None:
            self.serve(machine, token, parked[0], may_wait=False)

    def _reply(self, machine: QuorumMachine, records: bytes) -> FetchReply:
        return FetchReply(leader=machine.leader, high_watermark=machine.high_watermark, records=records)

    def _read(self, machine: QuorumMachine, token: int, ask: FetchAsk) -> None:
        found = self._log.read(
            ask.offset, size_bytes_max=self._settings.fetch_bytes_max, upto_offset=self._log.end_offset
        )
        if found is None:
            self._answer(token, self._reply(machine, b""))
            return
        data = found.file.read_nowait(found.size, found.position)
        if data is not None:
            found.release()
            self._answer(token, self._reply(machine, bytes(data)))
            return

        async def read_cold() -> None:
            try:
                cold = await run_off_loop(self._environment.threads, found.file.read, found.size, found.position)
            except OSError as error:
                self._answer(token, FetchReply(error_code=KafkaStorageError.code, message=str(error)))
                return
            finally:
                found.release()
            # Batches are immutable, but whose log they are in may have been decided meanwhile.
            refused = leading.refusal_of(machine, ask)
            self._answer(token, refused or self._reply(machine, bytes(cold)))

        self._spawn(read_cold())

    def serve_snapshot(self, machine: QuorumMachine, token: int, ask: SnapshotAsk) -> None:
        self._spawn(self._read_snapshot(machine, token, ask))

    async def _read_snapshot(self, machine: QuorumMachine, token: int, ask: SnapshotAsk) -> None:
        try:
            part = await run_off_loop(
                self._environment.threads,
                metadata_files.read_snapshot_part,
                self._environment.files,
                self._log.directory,
                SnapshotId(*ask.snapshot),
                max(ask.position, 0),
                self._settings.fetch_snapshot_bytes_max,
            )
        except OSError as error:
            self._answer(token, SnapshotReply(error_code=KafkaStorageError.code, message=str(error)))
            return
        error_code, size_bytes, data = 0, 0, b""
        if part is None:
            error_code = SnapshotNotFound.code
        elif not 0 <= ask.position < max(part[0], 1):
            error_code = PositionOutOfRange.code
        else:
            size_bytes, data = part
        self._answer(
            token,
            SnapshotReply(
                error_code=error_code,
                leader=machine.leader,
                snapshot=ask.snapshot,
                size_bytes=size_bytes,
                position=ask.position,
                data=data,
            ),
        )
