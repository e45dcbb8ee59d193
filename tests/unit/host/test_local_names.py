from __future__ import annotations

import ipaddress
import socket

import pytest

from millbeck.host import local_names as module
from millbeck.host.local_names import LOOPBACK, local_names


def test_loopback_is_first_and_each_name_is_there_once() -> None:
    found = local_names()
    assert tuple(found[: len(LOOPBACK)]) == LOOPBACK
    assert len(set(found)) == len(found)
    assert socket.gethostname() in found


def test_addresses_that_a_certificate_cannot_name_are_left_out() -> None:
    addresses = [each for each in local_names() if each[0].isdigit() or ":" in each]
    assert not [each for each in addresses if ipaddress.ip_address(each).is_link_local and ":" in each]
    assert "0.0.0.0" not in addresses


def test_a_system_without_lists_of_interfaces_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROUTES_IPV4", "/nowhere")
    monkeypatch.setattr(module, "_INTERFACES_IPV6", "/nowhere")
    assert "localhost" in local_names()
