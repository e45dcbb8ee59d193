"""A broker registers, is heard, let in, fenced and let in again, and leaves when others have taken over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ApiError,
    DuplicateBrokerRegistration,
    InconsistentClusterId,
    NotController,
    RequestTimedOut,
    StaleBrokerEpoch,
    UnsupportedVersion,
)
from millbeck.metadata.features import SUPPORTED_FEATURES
from millbeck.metadata.image import Endpoint
from millbeck.server.broker_lifecycle import (
    BrokerLifecycleManager,
    BrokerLifecycleState,
    RegistrationFailed,
    to_registration,
)
from millbeck.server.config.sections.metadata_log import MembershipOptions
from millbeck.simulation import World
from millbeck.wire.messages.nodes import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

ENDPOINT = Endpoint(listener="PLAINTEXT", host="h", port=9092, security_protocol=0)
DIRECTORY = bytes(15) + b"\x05"


class Controller:
    """Answers as it is told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.is_closed = False
        self.registrations: list[BrokerRegistrationRequest] = []
        self.heartbeats: list[BrokerHeartbeatRequest] = []
        self.times: list[float] = []
        self.reply_s = 0.0
        self.attempt_s_max: float | None = None
        self.registration_errors: list[int] = []
        self.heartbeat: Callable[[BrokerHeartbeatRequest], BrokerHeartbeatResponse] = lambda _: BrokerHeartbeatResponse(
            is_fenced=False, is_caught_up=True
        )

    async def request(
        self, message: Any, response: type[Any], *, timeout_s: float, attempt_s_max: float | None = None
    ) -> Any:
        await asyncio.sleep(0.001)
        if isinstance(message, BrokerRegistrationRequest):
            self.registrations.append(message)
            code = self.registration_errors.pop(0) if self.registration_errors else 0
            return BrokerRegistrationResponse(error_code=code, broker_epoch=7)
        self.heartbeats.append(message)
        self.times.append(asyncio.get_running_loop().time())
        self.attempt_s_max = attempt_s_max
        await asyncio.sleep(self.reply_s)
        return self.heartbeat(message)


class Setting:
    def __init__(self, environment: Environment, **options: Any) -> None:
        self.controller = Controller()
        self.tasks: list[asyncio.Task[None]] = []
        self.peers = 1
        texts = {name.replace("_", "."): str(value) for name, value in options.pop("settings", {}).items()}
        from millbeck.kernel.options import ConfigLayers

        # The node's context.
        self.environment, self.node_id, self.cluster_id = environment, 3, "c"
        self.config = SimpleNamespace(
            membership=MembershipOptions.resolve(ConfigLayers(static=texts)),
            node=SimpleNamespace(
                broker_rack="r", log_dir_failure_timeout_ms=options.pop("directory_failure_timeout_ms", 30_000)
            ),
            supported_features=SUPPORTED_FEATURES,
        )
        self.membership = BrokerLifecycleManager(
            cast(Any, self),
            cast(Any, self.controller),
            **options,
        )

    @property
    def image(self) -> Any:
        brokers = [SimpleNamespace(broker_id=3 + number) for number in range(self.peers + 1)]
        return SimpleNamespace(offset=41, cluster=SimpleNamespace(unfenced_brokers=lambda: brokers))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    async def join(self, **arguments: Any) -> None:
        await self.membership.join([ENDPOINT], [DIRECTORY], **arguments)


def run(scenario: Callable[[Setting], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def whole(environment: Environment) -> None:
        setting = Setting(environment, **options)
        await scenario(setting)
        setting.membership.stop()
        await asyncio.gather(*setting.tasks)

    with World(1) as world:
        world.run(whole, limit_s=2000)


def test_joining_says_who_we_are_and_lets_us_in() -> None:
    async def scenario(setting: Setting) -> None:
        await setting.join(previous_epoch=5)
        await setting.membership.wait_unfenced()
        assert (setting.membership.epoch, setting.membership.state) == (7, BrokerLifecycleState.RUNNING)
        (request,) = setting.controller.registrations
        assert (request.broker_id, request.cluster_id, request.rack) == (3, "c", "r")
        assert (request.previous_broker_epoch, request.log_dirs) == (5, [DIRECTORY])
        assert [(each.name, each.host, each.port) for each in request.listeners] == [("PLAINTEXT", "h", 9092)]
        assert {each.name for each in request.features} >= {"metadata.version"}
        heartbeat = setting.controller.heartbeats[0]
        assert (heartbeat.broker_id, heartbeat.broker_epoch, heartbeat.current_metadata_offset) == (3, 7, 41)
        assert not heartbeat.want_fence

    run(scenario)


def test_heartbeats_come_as_often_as_they_are_set_to() -> None:
    async def scenario(setting: Setting) -> None:
        await setting.join()
        await asyncio.sleep(10.5)
        gaps = [after - before for before, after in pairwise(setting.controller.times)]
        assert len(gaps) >= 18
        assert all(0.4 < gap < 0.6 for gap in gaps)

    run(scenario, settings={"broker_heartbeat_interval_ms": 500})


@pytest.mark.parametrize(("reply_s", "gap_s"), [(0.3, 0.5), (0.8, 0.8)])
def test_the_interval_begins_when_a_heartbeat_is_sent(reply_s: float, gap_s: float) -> None:
    async def scenario(setting: Setting) -> None:
        setting.controller.reply_s = reply_s
        await setting.join()
        await asyncio.sleep(10.5)
        gaps = [after - before for before, after in pairwise(setting.controller.times[3:])]
        assert len(gaps) >= 8
        assert all(gap_s - 0.05 < gap < gap_s + 0.05 for gap in gaps)
        assert setting.controller.attempt_s_max == 4.5, "half a session"

    run(scenario, settings={"broker_heartbeat_interval_ms": 500})


def test_a_process_that_is_still_heard_of_is_waited_for() -> None:
    async def scenario(setting: Setting) -> None:
        setting.controller.registration_errors = [DuplicateBrokerRegistration.code] * 5
        await setting.join()
        assert len(setting.controller.registrations) == 6
        assert len({each.incarnation_id for each in setting.controller.registrations}) == 1

    run(scenario)


@pytest.mark.parametrize("error", [InconsistentClusterId, UnsupportedVersion])
def test_what_is_refused_for_good_is_not_tried_again(error: Any) -> None:
    async def scenario(setting: Setting) -> None:
        setting.controller.registration_errors = [error.code]
        with pytest.raises(RegistrationFailed, match=error.kafka_name):
            await setting.join()
        assert len(setting.controller.registrations) == 1

    run(scenario)


def test_registering_takes_no_longer_than_it_may() -> None:
    async def scenario(setting: Setting) -> None:
        setting.controller.registration_errors = [DuplicateBrokerRegistration.code] * 1000
        began = asyncio.get_running_loop().time()
        with pytest.raises(RegistrationFailed, match=r"initial\.broker\.registration\.timeout\.ms"):
            await setting.join()
        assert 4.9 < asyncio.get_running_loop().time() - began < 7

    run(scenario, settings={"initial_broker_registration_timeout_ms": 5000})


def test_the_controller_in_this_process_is_asked_first() -> None:
    asked = []

    async def here(registration: Any) -> int:
        asked.append(registration)
        return 11

    async def not_here(registration: Any) -> int:
        raise NotController

    async def scenario(setting: Setting) -> None:
        await setting.join(previous_epoch=2)
        assert setting.membership.epoch == (11 if asked else 7)

    run(scenario, register_here=here)
    (registration,) = asked
    assert (registration.node_id, registration.previous_broker_epoch, registration.cluster_id) == (3, 2, "c")
    assert registration.endpoints == (ENDPOINT,)
    asked.clear()
    run(scenario, register_here=not_here)


def test_a_fenced_broker_asks_to_be_let_in_again_and_trouble_does_not_end_the_heartbeats() -> None:
    async def scenario(setting: Setting) -> None:
        await setting.join()
        await setting.membership.wait_unfenced()
        answers: Iterator[BrokerHeartbeatResponse | ApiError] = iter(
            [
                BrokerHeartbeatResponse(error_code=StaleBrokerEpoch.code),
                BrokerHeartbeatResponse(is_fenced=True),
                BrokerHeartbeatResponse(error_code=9999),
                RequestTimedOut(),
                BrokerHeartbeatResponse(is_fenced=False),
            ]
        )

        def answer(_: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
            found = next(answers, BrokerHeartbeatResponse(is_fenced=False))
            if not isinstance(found, BrokerHeartbeatResponse):
                raise found
            return found

        setting.controller.heartbeat = answer
        await asyncio.sleep(5)
        assert setting.membership.is_fenced
        assert not setting.controller.heartbeats[-1].want_fence
        await asyncio.sleep(8)
        assert not setting.membership.is_fenced
        assert setting.membership.state is BrokerLifecycleState.RUNNING

    run(scenario)


def test_a_lost_directory_is_told_of_at_once_and_from_then_on() -> None:
    async def scenario(setting: Setting) -> None:
        await setting.join()
        await setting.membership.wait_unfenced()
        await asyncio.sleep(0.1)
        count = len(setting.controller.heartbeats)
        setting.membership.directory_failed(DIRECTORY)
        await asyncio.sleep(0.1)
        assert len(setting.controller.heartbeats) == count + 1
        await asyncio.sleep(5)
        assert [each.offline_log_dirs for each in setting.controller.heartbeats[count:]] == [[DIRECTORY]] * 3

    run(scenario)


def test_a_directory_that_nobody_can_be_told_of_ends_the_node_in_time() -> None:
    ended: list[float] = []

    async def scenario(setting: Setting) -> None:
        await setting.join()
        await setting.membership.wait_unfenced()

        def refuse(_: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
            raise RequestTimedOut

        setting.controller.heartbeat = refuse
        began = asyncio.get_running_loop().time()
        setting.membership.directory_failed(DIRECTORY)
        await asyncio.sleep(9)
        assert ended == []
        await asyncio.sleep(4)
        assert ended
        assert 10 <= ended[0] - began < 13

    run(
        scenario,
        directory_failure_timeout_ms=10_000,
        on_unreported=lambda: ended.append(asyncio.get_running_loop().time()),
    )


def test_leaving_waits_until_the_controller_lets_us_go() -> None:
    async def scenario(setting: Setting) -> None:
        await setting.join()
        await setting.membership.wait_unfenced()
        allowed_from = asyncio.get_running_loop().time() + 3

        def answer(request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
            may_end = request.want_shut_down and asyncio.get_running_loop().time() >= allowed_from
            return BrokerHeartbeatResponse(is_fenced=False, should_shut_down=may_end)

        setting.controller.heartbeat = answer
        await setting.membership.leave()
        assert 0 <= asyncio.get_running_loop().time() - allowed_from < 0.3
        assert setting.controller.heartbeats[-1].want_shut_down

    run(scenario)


def test_a_broker_alone_has_nobody_to_wait_for() -> None:
    async def scenario(setting: Setting) -> None:
        setting.peers = 0
        await setting.join()
        await setting.membership.wait_unfenced()
        await setting.membership.leave()
        assert not any(each.want_shut_down for each in setting.controller.heartbeats)

    run(scenario)


def test_leaving_ends_when_no_controller_is_left_to_hear_of_it() -> None:
    async def scenario(setting: Setting) -> None:
        await setting.join()
        await setting.membership.wait_unfenced()
        asked = 0

        def nobody(request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
            nonlocal asked
            asked += request.want_shut_down
            raise RequestTimedOut("no active controller answered in time")

        setting.controller.heartbeat = nobody
        await asyncio.sleep(5)
        assert setting.membership.state is BrokerLifecycleState.RUNNING
        await asyncio.wait_for(setting.membership.leave(), 5)
        assert asked == 1

    run(scenario)


def test_leaving_does_not_take_for_ever() -> None:
    async def scenario(setting: Setting) -> None:
        await setting.join()
        await setting.membership.wait_unfenced()
        began = asyncio.get_running_loop().time()
        await setting.membership.leave()
        assert 299 < asyncio.get_running_loop().time() - began < 301

    run(scenario)


def test_a_registration_keeps_what_the_request_says() -> None:
    request = BrokerRegistrationRequest(broker_id=1, cluster_id="x", incarnation_id=DIRECTORY, log_dirs=[DIRECTORY])
    registration = to_registration(request)
    assert (registration.node_id, registration.cluster_id, registration.incarnation_id) == (1, "x", DIRECTORY)
    assert (registration.directories, registration.previous_broker_epoch) == ((DIRECTORY,), -1)


def test_a_node_that_stops_does_not_warn_that_no_controller_hears_of_it(caplog: pytest.LogCaptureFixture) -> None:
    def nobody(request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        raise RequestTimedOut("no active controller answered in time")

    async def warned(setting: Setting) -> list[str]:
        caplog.clear()
        await asyncio.sleep(5)
        return [each.message for each in caplog.records if each.levelname == "WARNING"]

    async def scenario(setting: Setting) -> None:
        await setting.join()
        await setting.membership.wait_unfenced()
        setting.controller.heartbeat = nobody
        assert len(await warned(setting)) >= 2
        leaving = asyncio.ensure_future(setting.membership.leave())
        assert await warned(setting) == []
        await leaving
        setting.membership.state = BrokerLifecycleState.RUNNING
        assert len(await warned(setting)) >= 2
        setting.controller.is_closed = True
        assert await warned(setting) == []

    run(scenario)
