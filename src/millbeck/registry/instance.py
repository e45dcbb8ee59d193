"""One instance of the registry: it reads the log, takes part in the election, and writes while it is the leader.

    following ──elected──▶ opening ──fenced and read──▶ leading ──write failed, another elected──▶ following

Writes are decided and written one after the other. A request that arrives while the leader opens its writer waits for
at most the session timeout, the duration of a failover.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from millbeck.client.cluster import Cluster
from millbeck.client.config import ClientConfig, Value
from millbeck.client.schemas.log_records import LogRecord
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, InvalidProducerEpoch, ProducerFenced
from millbeck.registry.decision import Decision
from millbeck.registry.election import Elected, Election, ElectionSettings, Identity
from millbeck.registry.errors import RegistryError, StoreFailed, StoreTimeout, UnknownLeader
from millbeck.registry.reader import Reader
from millbeck.registry.remedies import with_remedy
from millbeck.registry.state import BACKWARD, RegistryState
from millbeck.registry.topic import ensure_topic
from millbeck.registry.writer import NOOP, Writer, transactional_id

log = logging.getLogger(__name__)

A = TypeVar("A")

_RETRY_SECONDS: Final = 0.2
_WRITES_WAITING_MAX: Final = 1000


class NotLeader(Exception):
    """Another instance is the leader: the request must be forwarded to it."""

    def __init__(self, leader: Identity) -> None:
        super().__init__(leader.url)
        self.leader = leader


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSettings:
    client: Mapping[str, Value]
    """The settings of the Kafka clients, such as bootstrap.servers."""
    topic: str = "_schemas"
    replication_factor: int = 3
    timeout_s: float = 10.0
    init_timeout_s: float = 60.0
    compatibility: str = BACKWARD
    """The default compatibility level."""
    has_mutable_mode: bool = True
    election: ElectionSettings = field(default_factory=ElectionSettings)


class Instance:
    """An instance. Create it inside a running event loop; call `start`, then `stop`."""

    def __init__(self, environment: Environment, identity: Identity, settings: InstanceSettings) -> None:
        self.identity = identity
        self.settings = settings
        self.leader: Identity | None = None
        """The current leader according to the group."""
        self.failure: BaseException | None = None
        self._environment = environment
        self._cluster: Cluster | None = None
        self._election: Election | None = None
        self._reader = Reader(environment, settings.client, settings.topic, on_replaced=self._begin_again)
        self._writer: Writer | None = None
        self._is_elected = False
        self._elected = asyncio.Event()
        self._settled = asyncio.Event()
        """Set while it is known which instance decides requests: this one, with an open writer, or another one."""
        self._writing = asyncio.Lock()
        self._waiting_count = 0
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._obstacle = ""
        """Why there is no leader, as far as this instance knows."""
        self._reopen_s = 0.0
        """The time at which a writer may be opened again after another instance has taken over."""

    @property
    def state(self) -> RegistryState:
        return self._reader.state

    @property
    def offset(self) -> int:
        """The offset of the last record in the state."""
        return self._reader.offset

    @property
    def is_leading(self) -> bool:
        """Whether this instance decides write requests."""
        return self._writer is not None

    @property
    def is_writing(self) -> bool:
        """Whether a write request is being decided or written."""
        return self._writer is not None and self._writing.locked()

    @property
    def replay_lag(self) -> int:
        """The number of offsets between the state and the last known end of the log."""
        return max(0, self._reader.end_offset - 1 - self._reader.offset)

    async def start(self) -> None:
        """Create the topic if it is missing, and begin to read; returns when the log has been read to its end."""
        settings = self.settings
        try:
            await ensure_topic(
                self._environment,
                settings.client,
                settings.topic,
                replication_factor=settings.replication_factor,
                timeout_s=settings.init_timeout_s,
            )
        except ApiError as error:
            raise self._explained(error) from error
        cluster = self._cluster = Cluster(self._environment, ClientConfig.parse(settings.client))
        cluster.start_upkeep()
        self._spawn(self._reader.run())
        async with asyncio.timeout(settings.init_timeout_s):
            while not self._reader.has_started:
                await asyncio.sleep(0.01)
        self._election = Election(cluster, self.identity, settings.election, self._on_election)
        self._election.on_error = self._take_note
        self._spawn(self._election.run())
        self._spawn(self._lead())

    def _explained(self, error: ApiError) -> ApiError:
        settings = self.settings
        return with_remedy(
            error,
            topic=settings.topic,
            group=settings.election.group_id,
            transactional_id=transactional_id(settings.topic),
        )

    def _take_note(self, error: Exception) -> None:
        """Remember, and log once, why there is no leader."""
        explained = self._explained(error) if isinstance(error, ApiError) else error
        reason = str(explained) or type(error).__name__
        if reason != self._obstacle:
            self._obstacle = reason
            log.warning("no schemas can be registered at the moment: %s", reason)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        task.add_done_callback(self._ended)
        self._tasks[task] = None

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            self.failure = task.exception()
            log.error("a task of the registry failed", exc_info=task.exception())

    async def stop(self) -> None:
        """Leave the group and end all tasks."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._election is not None:
            await self._election.leave()
        await self._end_writer()
        if self._cluster is not None:
            await self._cluster.close()

    # leading

    def _on_election(self, elected: Elected | None) -> None:
        self.leader = None if elected is None else elected.identity
        self._is_elected = elected is not None and elected.is_me
        if self._is_elected:
            self._elected.set()
            if self._writer is None:
                self._settled.clear()
            return
        self._elected.clear()
        if self._writer is not None:
            writer, self._writer = self._writer, None
            self._spawn(writer.close())
        if self.leader is not None:
            self._settled.set()
        else:
            self._settled.clear()

    def _begin_again(self) -> None:
        """Start again because the log was replaced: the fencing and the state are no longer valid."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            self._spawn(writer.close())
            self._settled.clear()

    async def _lead(self) -> None:
        """Keep a writer open while this instance is elected."""
        while True:
            await self._elected.wait()
            if self._writer is None and asyncio.get_running_loop().time() >= self._reopen_s:
                await self._open_writer()
            await asyncio.sleep(_RETRY_SECONDS)

    async def _open_writer(self) -> None:
        settings = self.settings
        try:
            writer = await Writer.open(
                self._environment, settings.client, settings.topic, self._reader, timeout_s=settings.timeout_s
            )
        except (ApiError, StoreTimeout, TimeoutError) as error:
            self._take_note(error)
            return
        if not self._is_elected:
            await writer.close()
            return
        log.info("this instance is the leader; %s is read up to offset %d", settings.topic, self.offset)
        self._writer = writer
        self._obstacle = ""
        self._settled.set()

    async def _end_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            if self._is_elected:
                self._settled.clear()
            await writer.close()

    # requests

    async def wait_settled(self) -> None:
        """Wait until write requests can be decided, here or by forwarding. Raises `UnknownLeader`, `NotLeader`."""
        try:
            await asyncio.wait_for(self._settled.wait(), self.settings.election.session_timeout_ms / 1000)
        except TimeoutError:
            raise self._no_leader() from None
        if self._writer is None:
            if self.leader is None or self.leader == self.identity:
                raise self._no_leader()
            raise NotLeader(self.leader)

    def _no_leader(self) -> UnknownLeader:
        reason = f": {self._obstacle}" if self._obstacle else ""
        return UnknownLeader(f"there is no leader at the moment{reason}; try again")

    async def submit(self, decide: Callable[[RegistryState], Decision[A]]) -> tuple[A, int]:
        """Decide a request and write its records; returns the answer and the offset that a reader must have read to see
        it.

        Raises what ``decide`` raises, `NotLeader`, and `RegistryError` if it could not be written.
        """
        if self._waiting_count >= _WRITES_WAITING_MAX:
            raise StoreTimeout(f"too many writes are waiting ({_WRITES_WAITING_MAX}); try again")
        self._waiting_count += 1
        try:
            async with asyncio.timeout(2 * self.settings.timeout_s), self._writing:
                await self.wait_settled()
                writer = self._writer
                assert writer is not None
                try:
                    decision = decide(self.state)
                except RegistryError:
                    await self._confirm(writer)
                    raise
                if not decision.records:
                    await self._confirm(writer)
                    return decision.answer, self.offset
                return decision.answer, await self._write(writer, decision.records)
        except TimeoutError:
            raise StoreTimeout("earlier writes took too long; try again") from None
        finally:
            self._waiting_count -= 1

    async def _confirm(self, writer: Writer) -> None:
        """Check, for an answer without a write, that this instance has not been replaced as leader.

        No other instance is elected before the session expires; after that, the log is checked.
        """
        if self._election is None or not self._election.has_lease:
            await self._write(writer, [NOOP])

    async def _write(self, writer: Writer, records: list[LogRecord]) -> int:
        try:
            return await writer.write(records)
        except (ApiError, RegistryError, TimeoutError) as error:
            await self._give_up(writer)
            if isinstance(error, ProducerFenced | InvalidProducerEpoch):
                # First check with the group whether this instance is still elected.
                wait_s = 2 * self.settings.election.heartbeat_interval_ms / 1000
                self._reopen_s = asyncio.get_running_loop().time() + wait_s
                log.warning(
                    "another instance writes to %s. If it belongs to another group, set the same "
                    "schema.registry.group.id on all instances (here: %s)",
                    self.settings.topic,
                    self.settings.election.group_id,
                )
                raise UnknownLeader("another instance is the leader now; try again") from error
            if isinstance(error, RegistryError):
                raise
            if isinstance(error, TimeoutError) or (isinstance(error, ApiError) and error.retriable):
                raise StoreTimeout(f"the write was not confirmed in time, and may have succeeded: {error}") from error
            raise StoreFailed(f"{self.settings.topic} cannot be written: {error}") from error
        except asyncio.CancelledError:
            await self._give_up(writer)
            raise

    async def _give_up(self, writer: Writer) -> None:
        """Close the writer after a write with an unknown result, and open another one, which reads the log again."""
        if self._writer is writer:
            await self._end_writer()
        else:
            await writer.close()

    async def has_seen(self, offset: int, timeout_s: float) -> bool:
        """Wait until the state has the record at this offset; returns whether it has."""
        return await self._reader.wait_for(offset, timeout_s)
