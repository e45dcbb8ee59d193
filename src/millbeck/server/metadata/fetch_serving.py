"""Serve Fetch and FetchSnapshot requests of quorum followers and observers: batches of the log, parts of a snapshot.

A fetch at the log end is parked until there are new records, the high watermark passes the one the follower knows, this
node loses leadership, or the wait time is over. It is then evaluated again, because the leader may have changed. Data
that is not in the page cache is read on a thread.
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
from millbeck.raft.messages import FetchRequest, FetchResponse, Response, SnapshotRequest, SnapshotResponse
from millbeck.server.loop.tasks import run_off_loop
from millbeck.server.metadata import metadata_files
from millbeck.server.metadata.quorum_settings import QuorumSettings
from millbeck.storage.log import Log


class FetchServing:
    def __init__(
        self,
        environment: Environment,
        log: Log,
        settings: QuorumSettings,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        answer: Callable[[int, Response], None],
    ) -> None:
        self._environment = environment
        self._log = log
        self._settings = settings
        self._spawn = spawn
        self._answer = answer
        # Bounded by the number of connections: each has at most one fetch in flight.
        self._parked: dict[int, tuple[FetchRequest, asyncio.TimerHandle]] = {}

    def serve(self, machine: QuorumMachine, token: int, request: FetchRequest, *, may_wait: bool = True) -> None:
        refused = leading.fetch_error(machine, request)
        if refused is not None:
            self._answer(token, refused)
        elif self._log.end_offset > request.offset:
            self._read(machine, token, request)
        elif may_wait and machine.high_watermark <= request.high_watermark:
            delay_s = self._settings.timeouts.fetch_wait_ms_max / 1000
            timer = asyncio.get_running_loop().call_later(delay_s, self._expire, machine, token)
            self._parked[token] = (request, timer)
        else:
            self._answer(token, self._reply(machine, b""))

    def evaluate_again(self, machine: QuorumMachine) -> None:
        """Evaluate the parked fetches again: new records, a new high watermark, or lost leadership."""
        if not self._parked:
            return
        parked, self._parked = self._parked, {}
        for token, (request, timer) in parked.items():
            timer.cancel()
            self.serve(machine, token, request)

    def close(self) -> None:
        for _, timer in self._parked.values():
            timer.cancel()
        self._parked.clear()

    def _expire(self, machine: QuorumMachine, token: int) -> None:
        parked = self._parked.pop(token, None)
        if parked is not None:
            self.serve(machine, token, parked[0], may_wait=False)

    def _reply(self, machine: QuorumMachine, records: bytes) -> FetchResponse:
        return FetchResponse(leader=machine.leader, high_watermark=machine.high_watermark, records=records)

    def _read(self, machine: QuorumMachine, token: int, request: FetchRequest) -> None:
        found = self._log.read(
            request.offset, size_bytes_max=self._settings.fetch_bytes_max, upto_offset=self._log.end_offset
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
                self._answer(token, FetchResponse(error_code=KafkaStorageError.code, message=str(error)))
                return
            finally:
                found.release()
            # Batches are immutable, but this node may have lost leadership during the read.
            refused = leading.fetch_error(machine, request)
            self._answer(token, refused or self._reply(machine, bytes(cold)))

        self._spawn(read_cold())

    def serve_snapshot(self, machine: QuorumMachine, token: int, request: SnapshotRequest) -> None:
        self._spawn(self._read_snapshot(machine, token, request))

    async def _read_snapshot(self, machine: QuorumMachine, token: int, request: SnapshotRequest) -> None:
        try:
            part = await run_off_loop(
                self._environment.threads,
                metadata_files.read_snapshot_part,
                self._environment.files,
                self._log.directory,
                SnapshotId(*request.snapshot),
                max(request.position, 0),
                self._settings.fetch_snapshot_bytes_max,
            )
        except OSError as error:
            self._answer(token, SnapshotResponse(error_code=KafkaStorageError.code, message=str(error)))
            return
        error_code, size_bytes, data = 0, 0, b""
        if part is None:
            error_code = SnapshotNotFound.code
        elif not 0 <= request.position < max(part[0], 1):
            error_code = PositionOutOfRange.code
        else:
            size_bytes, data = part
        self._answer(
            token,
            SnapshotResponse(
                error_code=error_code,
                leader=machine.leader,
                snapshot=request.snapshot,
                size_bytes=size_bytes,
                position=request.position,
                data=data,
            ),
        )
