"""Just enough HTTP: scrapers get their metrics, everyone else a short answer, and nobody gets to hold the node up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, cast

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.metrics import CONTENT_TYPE
from millbeck.server.metrics_endpoint import CONNECTIONS_MAX, IDLE_SECONDS_MAX, REQUEST_BYTES_MAX, MetricsEndpoint
from millbeck.testing.sim import World


class Browser(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = b""
        self.is_lost = False
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(Any, transport)

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True

    async def ask(self, request: bytes) -> bytes:
        """What came within a second."""
        self.received = b""
        self.transport.write(request)
        await asyncio.sleep(1)
        return self.received


class Scraped:
    """A running endpoint; counts how often it was asked to render."""

    def __init__(self, environment: Environment, text: str = "up 1\n") -> None:
        self.text = text
        self.render_count = 0
        self.environment = environment
        self.endpoint = MetricsEndpoint(environment.network, self.render)
        self.port = 0

    def render(self) -> Iterator[str]:
        self.render_count += 1
        yield self.text

    async def connect(self) -> Browser:
        _, browser = await self.environment.network.connect(Browser, host="harness", port=self.port)
        return cast(Browser, browser)


def served(scenario: Callable[[Scraped], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def whole(environment: Environment) -> None:
        scraped = Scraped(environment, **options)
        scraped.port = await scraped.endpoint.start("", 9404)
        await scenario(scraped)

    with World(1) as world:
        world.run(whole, limit_s=600)


def get(path: str = "/metrics", *headers: str, method: str = "GET", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/{version}", "Host: x", *headers, "", ""]).encode()


def test_metrics_are_served_and_the_connection_stays() -> None:
    async def scenario(scraped: Scraped) -> None:
        browser = await scraped.connect()
        for path in ("/metrics", "/metrics?name=x"):
            head, _, body = (await browser.ask(get(path))).partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            assert lines[0] == "HTTP/1.1 200 OK"
            assert f"Content-Type: {CONTENT_TYPE}" in lines
            assert "Content-Length: 5" in lines
            assert "Connection: keep-alive" in lines
            assert body == b"up 1\n"
        assert (scraped.render_count, browser.is_lost) == (2, False)

    served(scenario)


def test_head_has_the_length_and_no_body() -> None:
    async def scenario(scraped: Scraped) -> None:
        answer = await (await scraped.connect()).ask(get(method="HEAD"))
        assert answer.endswith(b"\r\n\r\n")
        assert b"Content-Length: 5" in answer

    served(scenario)


def test_the_root_says_where_to_look_and_other_paths_are_not_found() -> None:
    async def scenario(scraped: Scraped) -> None:
        browser = await scraped.connect()
        assert b"/metrics" in await browser.ask(get("/"))
        assert (await browser.ask(get("/favicon.ico"))).startswith(b"HTTP/1.1 404 ")
        assert not browser.is_lost
        assert scraped.render_count == 0

    served(scenario)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get(method="POST"), b"405"),
        (get(method="DELETE"), b"405"),
        (b"GET /metrics\r\n\r\n", b"400"),
        (b"GET /metrics SPDY/3\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", b"400"),
        (b"GET /" + b"x" * REQUEST_BYTES_MAX, b"431"),
        (b"GET /" + b"x" * REQUEST_BYTES_MAX + b" HTTP/1.1\r\n\r\n", b"431"),
    ],
)
def test_what_is_no_proper_request_is_answered_and_ends_the_connection(request_: bytes, status: bytes) -> None:
    async def scenario(scraped: Scraped) -> None:
        browser = await scraped.connect()
        answer = await browser.ask(request_)
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert b"Connection: close" in answer
        assert browser.is_lost
        assert scraped.render_count == 0

    served(scenario)


@pytest.mark.parametrize("request_", [get("/metrics", "Connection: close"), get(version="1.0")])
def test_a_client_may_ask_for_the_end_of_the_connection(request_: bytes) -> None:
    async def scenario(scraped: Scraped) -> None:
        browser = await scraped.connect()
        assert (await browser.ask(request_)).endswith(b"up 1\n")
        assert browser.is_lost

    served(scenario)


def test_a_request_may_come_in_pieces_and_several_in_one() -> None:
    async def scenario(scraped: Scraped) -> None:
        browser = await scraped.connect()
        request = get()
        for position in range(0, len(request), 7):
            browser.transport.write(request[position : position + 7])
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        assert browser.received.count(b"up 1") == 1
        assert (await browser.ask(get() * 5)).count(b"up 1") == 5

    served(scenario)


def test_a_page_is_made_in_parts_with_turns_for_others_in_between() -> None:
    async def scenario(scraped: Scraped) -> None:
        turns: list[str] = []
        loop = asyncio.get_running_loop()

        def parts() -> Iterator[str]:
            for number in range(3):
                loop.call_soon(turns.append, "other")
                turns.append("part")
                yield f"part {number}\n"

        scraped.endpoint.render = parts
        browser = await scraped.connect()
        answer = await browser.ask(get() + get("/"))
        assert b"part 0\npart 1\npart 2\nHTTP/1.1 200 OK" in answer, "one answer after the other"
        assert turns == ["part", "other"] * 3

    served(scenario)


def test_a_page_that_nobody_waits_for_any_more_is_not_made_to_its_end() -> None:
    async def scenario(scraped: Scraped) -> None:
        made: list[int] = []

        def parts() -> Iterator[str]:
            for number in range(1_000_000):
                made.append(number)
                if number == 5:
                    next(iter(scraped.endpoint.connections)).close()
                yield "x"

        scraped.endpoint.render = parts
        browser = await scraped.connect()
        await browser.ask(get())
        assert browser.is_lost
        assert 5 <= len(made) < 10

    served(scenario)


def test_a_reader_that_does_not_read_is_not_answered_again_and_again() -> None:
    async def scenario(scraped: Scraped) -> None:
        browser = await scraped.connect()
        browser.transport.pause_reading()
        browser.transport.write(get() * 40)
        await asyncio.sleep(5)
        assert scraped.render_count < 10
        (connection,) = scraped.endpoint.connections
        assert len(connection._received) < 400_000
        browser.transport.resume_reading()
        await asyncio.sleep(30)
        assert scraped.render_count == 40

    served(scenario, text="x" * 200_000)


def test_silence_ends_the_connection() -> None:
    async def scenario(scraped: Scraped) -> None:
        browser = await scraped.connect()
        await asyncio.sleep(IDLE_SECONDS_MAX / 2)
        await browser.ask(get())
        await asyncio.sleep(IDLE_SECONDS_MAX - 2)
        assert not browser.is_lost
        await asyncio.sleep(3)
        assert browser.is_lost
        assert scraped.endpoint.connections == {}

    served(scenario)


def test_there_are_only_so_many_connections() -> None:
    async def scenario(scraped: Scraped) -> None:
        browsers = [await scraped.connect() for _ in range(CONNECTIONS_MAX + 3)]
        await asyncio.sleep(1)
        assert sum(browser.is_lost for browser in browsers) == 3
        browsers[0].transport.close()
        await asyncio.sleep(1)
        assert (await (await scraped.connect()).ask(get())).endswith(b"up 1\n")

    served(scenario)


def test_a_taken_port_is_replaced_by_a_free_one() -> None:
    async def scenario(scraped: Scraped) -> None:
        assert scraped.port == 9404
        second = Scraped(scraped.environment, "other 1\n")
        second.port = await second.endpoint.start("", 9404)
        assert second.port not in (0, 9404)
        assert (await (await second.connect()).ask(get())).endswith(b"other 1\n")

    served(scenario)


def test_stopping_ends_what_is_open() -> None:
    async def scenario(scraped: Scraped) -> None:
        browser = await scraped.connect()
        await browser.ask(get())
        scraped.endpoint.stop()
        await asyncio.sleep(1)
        assert browser.is_lost
        with pytest.raises(OSError):
            await scraped.connect()

    served(scenario)
