"""Just enough HTTP: scrapers get their metrics, everyone else a short answer, and nobody gets to hold the node up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterator
from typing import Any, cast

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.metrics import CONTENT_TYPE
from millbeck.server.metrics.endpoint import CONNECTIONS_MAX, IDLE_SECONDS_MAX, REQUEST_BYTES_MAX, MetricsEndpoint
from millbeck.simulation import World


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
        self.names: Collection[str] | None = None
        self.environment = environment
        self.endpoint = MetricsEndpoint(environment.network, self.render)
        self.port = 0

    def render(self, names: Collection[str] | None) -> Iterator[str]:
        self.render_count += 1
        self.names = names
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


CHUNKS = b"5\r\nup 1\n\r\n0\r\n\r\n"
"""The page "up 1" in chunks, and the end of them."""


def text_of(chunks: bytes) -> str:
    """What chunks and their end are together; fails on anything else."""
    text = b""
    while True:
        size, _, chunks = chunks.partition(b"\r\n")
        count = int(size, 16)
        assert chunks[count : count + 2] == b"\r\n"
        text, chunks = text + chunks[:count], chunks[count + 2 :]
        if not count:
            assert not chunks
            return text.decode()


def test_metrics_are_served_and_the_connection_stays() -> None:
    async def scenario(scraped: Scraped) -> None:
        browser = await scraped.connect()
        for path in ("/metrics", "/metrics?name=x"):
            head, _, body = (await browser.ask(get(path))).partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            assert lines[0] == "HTTP/1.1 200 OK"
            assert f"Content-Type: {CONTENT_TYPE}" in lines
            assert "Transfer-Encoding: chunked" in lines
            assert "Connection: keep-alive" in lines
            assert body == CHUNKS
            assert scraped.names is None
        assert (scraped.render_count, browser.is_lost) == (2, False)

    served(scenario)


def test_head_has_no_body_and_makes_no_page() -> None:
    async def scenario(scraped: Scraped) -> None:
        browser = await scraped.connect()
        answer = await browser.ask(get(method="HEAD"))
        assert answer.endswith(b"\r\n\r\n")
        assert b"Transfer-Encoding: chunked" in answer
        assert scraped.render_count == 0
        assert (await browser.ask(get())).endswith(CHUNKS)

    served(scenario)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("name[]=up", {"up"}),
        ("name%5B%5D=a_total&name[]=b&other=c", {"a_total", "b"}),
        ("name[]=", {""}),
        ("name=up", None),
        ("%zz&&=", None),
    ],
)
def test_a_query_names_the_metrics_that_are_wanted(query: str, names: set[str] | None) -> None:
    async def scenario(scraped: Scraped) -> None:
        assert (await (await scraped.connect()).ask(get(f"/metrics?{query}"))).endswith(CHUNKS)
        assert scraped.names == names

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
        head, _, body = (await browser.ask(request_)).partition(b"\r\n\r\n")
        assert browser.is_lost
        is_chunked = b"HTTP/1.1" in request_
        assert body == (CHUNKS if is_chunked else b"up 1\n")
        assert (b"chunked" in head) == is_chunked
        assert b"Content-Length" not in head

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

        def parts(names: Collection[str] | None) -> Iterator[str]:
            for number in range(3):
                loop.call_soon(turns.append, "other")
                turns.append("part")
                yield f"part {number}\n" if number != 1 else ""

        scraped.endpoint.render = parts
        browser = await scraped.connect()
        answer = await browser.ask(get() + get("/"))
        first, _, second = answer.partition(b"\r\n\r\n")[2].partition(b"HTTP/1.1 200 OK")
        assert text_of(first) == "part 0\npart 2\n", "an empty part is no chunk, which would end the page"
        assert b"/metrics" in second, "one answer after the other"
        assert turns == ["part", "other"] * 3

    served(scenario)


def test_a_page_that_nobody_waits_for_any_more_is_not_made_to_its_end() -> None:
    async def scenario(scraped: Scraped) -> None:
        made: list[int] = []

        def parts(names: Collection[str] | None) -> Iterator[str]:
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


def test_one_part_is_made_in_a_turn_whoever_it_is_for() -> None:
    async def scenario() -> None:
        endpoint = MetricsEndpoint(cast(Any, None), lambda names: iter(()))
        made: list[int] = []

        class Waiting:
            def __init__(self, number: int) -> None:
                self.number = number
                self.left = 3

            def make_part(self) -> None:
                made.append(self.number)
                self.left -= 1
                if self.left:
                    endpoint.wants_part(cast(Any, self))

        for number in range(4):
            endpoint.wants_part(cast(Any, Waiting(number)))
        for turn in range(12):
            await asyncio.sleep(0)
            assert len(made) == turn + 1
        await asyncio.sleep(0)
        assert made == [0, 1, 2, 3] * 3

    asyncio.run(scenario())


def test_no_part_is_made_for_a_reader_that_has_not_read_the_last_one() -> None:
    async def scenario(scraped: Scraped) -> None:
        made = 0

        def parts(names: Collection[str] | None) -> Iterator[str]:
            nonlocal made
            for _ in range(200):
                made += 1
                yield "x" * 100_000 + "\n"

        scraped.endpoint.render = parts
        browser = await scraped.connect()
        browser.transport.pause_reading()
        browser.transport.write(get())
        for _ in range(50):
            await asyncio.sleep(0.1)
            browser.transport.write(b"x" * 20_000)
        assert made < 20
        (connection,) = scraped.endpoint.connections
        assert len(connection._received) < 400_000
        browser.transport.resume_reading()
        await asyncio.sleep(30)
        assert made == 200

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
        assert (await (await scraped.connect()).ask(get())).endswith(CHUNKS)

    served(scenario)


def test_a_taken_port_is_replaced_by_a_free_one() -> None:
    async def scenario(scraped: Scraped) -> None:
        assert scraped.port == 9404
        second = Scraped(scraped.environment, "other 1\n")
        second.port = await second.endpoint.start("", 9404)
        assert second.port not in (0, 9404)
        assert (await (await second.connect()).ask(get())).endswith(b"other 1\n\r\n0\r\n\r\n")

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
