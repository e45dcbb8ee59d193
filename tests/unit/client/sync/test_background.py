"""Calls into the thread of the event loop, without a broker: what goes wrong is said in one line."""

from __future__ import annotations

import asyncio
import threading

import pytest

from millbeck.client.errors import ClientClosed, WrongEventLoop
from millbeck.client.sync import Admin, Producer
from millbeck.host.loop_thread import Caller, Delivery, LoopThread

HERE = {"bootstrap.servers": "127.0.0.1:1"}


def test_a_delivery_is_waited_for_from_another_thread() -> None:
    delivery: Delivery[int] = Delivery()
    with pytest.raises(TimeoutError):
        delivery.result(0.01)
    told: list[int] = []
    delivery.add_done_callback(lambda done: told.append(done.result()))
    threading.Timer(0.05, delivery.complete, (7,)).start()
    assert delivery.result(10) == 7
    delivery.add_done_callback(lambda done: told.append(-1))
    assert told[-1] == -1


def test_a_delivery_raises_its_error() -> None:
    delivery: Delivery[int] = Delivery()
    delivery.complete(None, ZeroDivisionError())
    assert isinstance(delivery.exception(), ZeroDivisionError)
    with pytest.raises(ZeroDivisionError):
        delivery.result()


def test_functions_run_in_the_calling_thread_while_it_waits() -> None:
    thread = LoopThread("test")

    async def work(caller: Caller) -> tuple[object, object]:
        return await caller.run(threading.current_thread), threading.current_thread()

    inside, loop_s = thread.run(work)
    assert inside is threading.current_thread()
    assert loop_s is not inside

    async def fail(caller: Caller) -> None:
        await caller.run(lambda: 1 // 0)

    with pytest.raises(ZeroDivisionError):
        thread.run(fail)
    thread.stop()
    assert thread.is_stopped


def test_a_callback_in_the_loop_s_thread_cannot_wait_for_itself() -> None:
    admin = Admin(HERE)

    async def wait() -> None:
        with pytest.raises(WrongEventLoop, match="cannot wait for this Admin"):
            admin.list_topics()

    admin._call(wait)
    admin.close()
    with pytest.raises(ClientClosed, match="the Admin is closed"):
        admin.list_topics()


def test_two_first_calls_at_once_start_one_thread() -> None:
    producer = Producer(HERE)
    found: list[LoopThread] = []
    threads = [threading.Thread(target=lambda: found.append(producer._loop_thread())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    producer.close(0)


def test_records_are_handed_over_in_runs() -> None:
    producer = Producer(HERE, linger_ms=5000)
    wakes: list[object] = []
    thread = producer._loop_thread()
    original = thread.call_soon

    def counted(function: object, *arguments: object) -> None:
        wakes.append(function)
        original(function, *arguments)  # type: ignore[arg-type]

    thread.call_soon = counted  # type: ignore[method-assign]
    for _ in range(900):
        producer.send_nowait("t", b"v")
    assert len(wakes) == 1
    producer.close(0)


def test_interrupting_a_wait_cancels_the_work() -> None:
    thread = LoopThread("test")
    cancelled = threading.Event()

    async def work(caller: Caller) -> None:
        try:
            await caller.run(interrupt)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        thread.run(work)
    assert cancelled.wait(5)
    thread.stop()
