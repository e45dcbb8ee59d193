"""A node with only a member of the quorum: the real driver on a disk, behind its own listener.

It serves the requests between members, without the rest of a node, so that the driver can run alone in a simulated
world. `QuorumRun` (``quorum_run``) runs several of them with elections, crashes and restarts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from millbeck.client.addresses import Address
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import Uuid
from millbeck.raft.options import QuorumTimeouts
from millbeck.records.control import VoterEndpoint
from millbeck.server.metadata import raft_messages
from millbeck.server.metadata.loading import open_metadata_log
from millbeck.server.metadata.quorum_driver import MetadataLogFailed, QuorumDriver
from millbeck.server.metadata.quorum_settings import QuorumSettings
from millbeck.server.metadata.snapshots import SnapshotOptions
from millbeck.storage.directory import LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from millbeck.wire import codec, framing
from millbeck.wire.api_keys import APIS
from millbeck.wire.messages.metadata import ApiVersion, ApiVersionsResponse, SupportedFeatureKey

PORT: Final = 9093
SERVED: Final = (1, 18, 52, 53, 54, 59, 80, 81, 82)
FRAME_BYTES_MAX: Final = 64 << 20


class QuorumNode:
    """One process of a member. `serve` returns when the driver has failed or `stop` was called."""

    def __init__(
        self, environment: Environment, settings: QuorumSettings, *, node_id: int, root: str = "/data"
    ) -> None:
        self.environment = environment
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        files = environment.files
        files.make_directory(root)
        files.sync_directory("/")
        self._directory = LogDirectory(
            files,
            root,
            cache=FileCache(files, 100),
            index_cache=IndexCache(),
            jitter_below=environment.randomness.below,
            on_failure=lambda reason: None,
        )
        log = open_metadata_log(self._directory, now_ms=environment.clock.wall_ms())
        self.driver = QuorumDriver(
            environment,
            log,
            node_id=node_id,
            spawn=self.spawn,
            on_fatal=self._failed,
            snapshot_options=SnapshotOptions(after_bytes=3000),
            settings=settings,
        )

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return task

    def _failed(self, error: MetadataLogFailed) -> None:
        if not self._over.done():
            self._over.set_exception(error)

    async def serve(self) -> None:
        await self.environment.network.listen(lambda: _Connection(self.driver, self.spawn), host="", port=PORT)
        await self.driver.start()
        await self._over

    async def stop(self) -> None:
        await self.driver.stop()
        if not self._over.done():
            self._over.set_result(None)


class _Connection(asyncio.Protocol):
    """One connection: requests are answered in order."""

    def __init__(self, driver: QuorumDriver, spawn: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        self._driver = driver
        self._spawn = spawn
        self._received = b""
        self._requests: asyncio.Queue[bytes] = asyncio.Queue()
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._spawn(self._serve())

    def data_received(self, data: bytes) -> None:
        self._received += data
        frames, rest = framing.split_frames(self._received, 0, len(self._received), FRAME_BYTES_MAX)
        for begin, end in frames:
            self._requests.put_nowait(self._received[begin:end])
        self._received = self._received[rest:]

    def connection_lost(self, error: Exception | None) -> None:
        self._requests.put_nowait(b"")

    async def _serve(self) -> None:
        while frame := await self._requests.get():
            header = framing.read_request_header(frame)
            api = APIS[header.api_key]
            request, _ = codec.decoder(api.request, header.api_version)(frame, header.body_position)
            response = await self._answer(header.api_key, request)
            body = codec.encoder(api.response, header.api_version)(response)
            prefix = framing.response_prefix(header.api_key, header.api_version, header.correlation_id, len(body))
            self._transport.write(prefix + body)

    async def _answer(self, api_key: int, request: Any) -> Any:
        if api_key == 18:
            return ApiVersionsResponse(
                api_keys=[ApiVersion(key, APIS[key].min_version, APIS[key].max_version) for key in SERVED],
                supported_features=[SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)],
            )
        try:
            ask = raft_messages.ask_of(request, self._driver.settings.cluster_id)
            return raft_messages.to_wire_response(request, await self._driver.ask(ask))
        except (ApiError, MetadataLogFailed) as error:
            response = APIS[api_key].response()
            response.error_code = getattr(error, "code", -1)
            return response


def settings_of(node_id: int, voters: tuple[int, ...], *, directory_id: Uuid, **more: Any) -> QuorumSettings:
    """Static voters on machines called ``c1``, ``c2``, ...; a node that is not one of them observes."""
    can_vote = node_id in voters
    more.setdefault("timeouts", QuorumTimeouts(election_ms=300, fetch_ms=600, request_ms=600, fetch_wait_ms_max=150))
    return QuorumSettings(
        can_vote=can_vote,
        cluster_id="a-cluster",
        directory_id=directory_id,
        static_voters={voter: Address(f"c{voter}", PORT) for voter in voters},
        listeners=(VoterEndpoint(name="CONTROLLER", host=f"c{node_id}", port=PORT),) if can_vote else (),
        **more,
    )
