"""A client starts with its first call, and belongs to the event loop and the process of that call."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from millbeck.client import Admin, Consumer, Producer, ShareConsumer, sync
from millbeck.client.errors import WrongEventLoop
from millbeck.client.lifecycle import merged
from millbeck.kernel.errors import InvalidConfig
from millbeck.records import batch
from millbeck.records.record import Record
from tests.unit.client.fake_cluster import FakeCluster, simulate

HERE = {"bootstrap.servers": "127.0.0.1:1"}
FORKED = """
import asyncio, os
from millbeck.client import Producer
from millbeck.client.errors import WrongEventLoop

async def first():
    producer = Producer({"bootstrap.servers": "127.0.0.1:1"})
    producer.cluster
    return producer

async def again(producer):
    try:
        producer.send_nowait("t", b"v")
    except WrongEventLoop as error:
        print(error, flush=True)

loop = asyncio.new_event_loop()
producer = loop.run_until_complete(first())
child = os.fork()
if child == 0:
    asyncio.run(again(producer))
    os._exit(0)
os.waitpid(child, 0)
loop.run_until_complete(producer.close(0))
"""


def test_clients_are_created_without_an_event_loop() -> None:
    for client in (Producer(HERE), Consumer(HERE), Admin(HERE), ShareConsumer(HERE, group_id="g")):
        assert not client.is_started


def test_a_client_that_was_never_used_closes_without_a_loop_of_its_own() -> None:
    async def close_all() -> None:
        for client in (Producer(HERE), Consumer(HERE), Admin(HERE), ShareConsumer(HERE, group_id="g")):
            await client.close()
            assert not client.is_started

    asyncio.run(close_all())


def test_settings_may_be_keyword_arguments() -> None:
    producer = Producer(bootstrap_servers="h:1", linger_ms=7, client_id="me")
    assert (producer.config.linger_ms, producer.config.client_id) == (7, "me")
    with pytest.raises(InvalidConfig, match=r"linger\.ms is given twice"):
        merged({"linger.ms": 1}, {"linger_ms": 2})
    with pytest.raises(InvalidConfig, match=r"Unknown configuration linger\.msec, did you mean linger\.ms\?"):
        Producer(HERE, linger_msec=1)


def test_a_call_without_an_event_loop_names_the_synchronous_client() -> None:
    with pytest.raises(WrongEventLoop, match=r"needs a running event loop: .* millbeck\.client\.sync\.Producer"):
        Producer(HERE).send_nowait("t", b"v")


def test_a_second_asyncio_run_is_told_apart() -> None:
    async def start() -> Producer:
        producer = Producer(HERE)
        assert producer.cluster is not None
        return producer

    async def use(producer: Producer) -> None:
        with pytest.raises(WrongEventLoop, match=r"a loop|closed, that of an earlier asyncio\.run"):
            await producer.send("t", b"v")

    with asyncio.Runner() as runner:
        producer = runner.run(start())
        with asyncio.Runner() as other, pytest.raises(WrongEventLoop, match="belongs to another event loop"):
            other.run(producer.send("t", b"v"))
        runner.run(producer.cluster.close())
    asyncio.run(use(producer))


def test_a_fork_is_told_apart() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=30, check=True)
    assert "create the client after the fork" in done.stdout


def test_subscribing_before_the_loop_runs_takes_effect_with_the_first_call() -> None:
    consumer = Consumer({**HERE, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["a"])

    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        log.append(batch.build([Record(-1, 1, None, b"v")]))
        consumer._given_environment = cluster.environment
        consumer.config = consumer.config.replace(bootstrap_servers=tuple(cluster.bootstrap.split(",")))
        async with asyncio.timeout(60), consumer:
            async for record in consumer:
                assert record.value == b"v"
                break

    simulate(scenario)


def test_an_error_of_the_start_is_what_the_program_sees() -> None:
    settings = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SSL", "ssl.ca.location": "/nowhere/ca.pem"}

    async def asynchronous() -> None:
        producer = Producer(settings)
        try:
            await producer.send("t", b"v")
        finally:
            await producer.close()

    with pytest.raises(InvalidConfig, match=r"/nowhere/ca\.pem"):
        asyncio.run(asynchronous())
    with pytest.raises(InvalidConfig, match=r"/nowhere/ca\.pem"), sync.Producer(settings) as producer:
        producer.send("t", b"v")
