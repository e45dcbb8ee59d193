from __future__ import annotations

import os
import socket
import sys

import pytest

from millbeck.cli.nodes import ports
from millbeck.cli.nodes.ports import PortUnusable, check_port_is_free, holder_of


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "", "0.0.0.0"])
def test_a_free_port_stays_free(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    check_port_is_free(host, port)
    check_port_is_free(host, port)
    check_port_is_free(host, 0)


@pytest.mark.parametrize("host", ["127.0.0.1", ""])
def test_a_port_in_use_names_the_address_and_who_holds_it(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(PortUnusable, match=f"^cannot listen on {host}:{port}: address already in use") as raised:
            check_port_is_free(host, port)
        assert raised.value.is_taken
        if sys.platform == "linux":
            assert f"by process {os.getpid()} (" in str(raised.value)
            assert str(holder_of(port)) in str(raised.value)


def test_a_host_that_is_not_here_is_named() -> None:
    with pytest.raises(PortUnusable, match=r"cannot listen on 192\.0\.2\.1:9: .*assign") as raised:
        check_port_is_free("192.0.2.1", 9)
    assert not raised.value.is_taken
    with pytest.raises(PortUnusable, match=r"cannot listen on nowhere\.invalid:9: "):
        check_port_is_free("nowhere.invalid", 9)


def test_a_port_that_nobody_holds_has_no_holder() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert holder_of(port) is None


def test_a_system_that_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_listening_inodes", lambda port: [])
    assert holder_of(9092) is None


def test_long_commands_are_cut() -> None:
    assert len(ports._command_of("self")) <= 60
    assert ports._command_of("nobody") == ""
