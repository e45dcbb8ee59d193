from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from millbeck.kernel.errors import TopicAlreadyExists
from millbeck.testing import Broker, BrokerFailed, broker
from millbeck.testing.topics import create_topic


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def test_a_node_serves_while_the_block_lasts() -> None:
    with broker() as running:
        assert answers(running.port)
        assert running.is_running
        with urllib.request.urlopen(running.metrics_url, timeout=10) as response:
            assert b"kafka_server_" in response.read()
        directory = running.directory
        assert (directory / "meta.properties").is_file()
    assert not answers(running.port)
    assert not running.is_running
    assert not directory.exists()


def test_address_and_records_survive_restart_and_crash(tmp_path: Path) -> None:
    with broker(data=tmp_path / "logs") as running:
        address = running.bootstrap
        create_topic(address, "kept")
        first = running.process_id
        running.restart()
        running.kill()
        assert not answers(running.port)
        running.start()
        assert running.bootstrap == address
        assert running.process_id != first
        with pytest.raises(TopicAlreadyExists):
            create_topic(address, "kept")
    assert (tmp_path / "logs" / "kept-0").is_dir()
    assert (tmp_path / "logs" / ".kafka_cleanshutdown").is_file()


def test_stopping_twice_and_starting_twice_do_no_harm() -> None:
    with broker() as running:
        process_id = running.process_id
        running.start()
        assert running.process_id == process_id
        running.stop()
        running.stop()
        running.kill()
        assert not running.is_running


def test_a_paused_node_answers_later(node: Broker) -> None:
    node.pause()
    with socket.create_connection(("127.0.0.1", node.port), 5) as connection:
        connection.sendall(bytes.fromhex("0000000a 0012 0000 00000007 ffff"))
        connection.settimeout(0.1)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        node.resume()
        connection.settimeout(10)
        assert connection.recv(8)[4:8] == bytes([0, 0, 0, 7])


def test_settings_reach_the_node_in_python_s_own_types() -> None:
    with (
        pytest.raises(BrokerFailed, match=r"num\.partitions"),
        broker({"auto.create.topics.enable": False}, num_partitions=0),
    ):
        pass


def test_a_directory_in_use_is_reported(tmp_path: Path) -> None:
    with (
        broker(data=tmp_path),
        pytest.raises(BrokerFailed, match="in use by another process"),
        broker(data=tmp_path),
    ):
        pass


@pytest.mark.parametrize("is_inherited", [False, True], ids=["pipe ends", "pipe held by another child"])
def test_nothing_is_left_when_the_parent_is_killed(is_inherited: bool) -> None:
    is_starter = "os.fork()" if is_inherited else "True"
    program = f"""if True:
        import os, time
        from millbeck.testing import broker
        with broker() as running:
            if {is_starter}:
                print(running.port, running.directory, flush=True)
            time.sleep(60)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert parent.stdout is not None
    try:
        port, directory = parent.stdout.readline().split()
        parent.kill()
        parent.wait()
        # The node is nobody's child here, so there is nothing to wait on but its traces.
        deadline = time.monotonic() + 30
        while Path(directory).exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not Path(directory).exists()
        assert not answers(int(port))
    finally:
        if is_inherited:
            os.killpg(parent.pid, signal.SIGKILL)
        parent.stdout.close()
