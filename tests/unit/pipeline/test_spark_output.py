"""What Spark's processes print reaches the terminal without noise."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from socketserver import BaseRequestHandler, BaseServer

import pytest

from millbeck.pipeline.spark_output import ignore_lost_connections, is_not_logged_by_py4j, useful, without_noise

NOISE = b"Streaming TransformWithStateInPandas Python worker Starting execution of UDF: <x>.\n"


def test_noise_goes_with_the_empty_line_behind_it() -> None:
    lines = [b"one\n", b"\n", NOISE, b"\n", b"two\n", NOISE, b"three\n", b"no end"]
    assert list(useful(iter(lines))) == [b"one\n", b"\n", b"two\n", b"three\n", b"no end"]


def test_a_process_that_is_started_meanwhile_is_filtered_for_its_life(capfd: pytest.CaptureFixture[str]) -> None:
    program = (
        "import sys; print('WARNING: Using incubator modules: x', file=sys.stderr); sys.stderr.flush();"
        "sys.stdin.read(); print('useful', file=sys.stderr)"
    )
    with without_noise():
        process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    print("ours", file=sys.stderr)
    process.communicate()
    said = ""
    ends_at = time.monotonic() + 10
    while "useful" not in said and time.monotonic() < ends_at:
        said += capfd.readouterr().err
    assert sorted(said.split()) == ["ours", "useful"]


def test_the_last_words_come_before_the_error(capfd: pytest.CaptureFixture[str]) -> None:
    def start() -> None:
        with without_noise():
            subprocess.run([sys.executable, "-c", "import sys; print('no memory', file=sys.stderr)"], check=True)
            raise RuntimeError("the gateway has exited")

    with pytest.raises(RuntimeError, match="gateway"):
        start()
    assert capfd.readouterr().err == "no memory\n"


@pytest.mark.parametrize(
    ("error", "is_told"), [(EOFError(), False), (ConnectionResetError(), False), (ValueError(), True)]
)
def test_a_cut_connection_is_not_printed_about(error: Exception, is_told: bool) -> None:
    told: list[object] = []

    class Server(BaseServer):
        def handle_error(self, request: object, client_address: object) -> None:
            told.append(request)

    ignore_lost_connections(Server)
    server = Server(("", 0), BaseRequestHandler)
    try:
        raise error
    except Exception:
        server.handle_error("a request", "an address")
    assert told == (["a request"] if is_told else [])


@pytest.mark.parametrize(("path", "expected"), [("/x/py4j/java_gateway.py", False), ("/x/pipeline/source.py", True)])
def test_the_bridge_to_java_is_no_news(path: str, expected: bool) -> None:
    record = logging.LogRecord("root", logging.ERROR, path, 1, "Exception while sending command.", (), None)
    assert is_not_logged_by_py4j(record) is expected
