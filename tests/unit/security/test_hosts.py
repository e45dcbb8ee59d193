"""Addresses and networks are compared as such, however they are written."""

from __future__ import annotations

import pytest

from millbeck.security.hosts import Networks, canonical_host


@pytest.mark.parametrize(
    ("host", "canonical"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::1"),
        ("not:an:address", "not:an:address"),
        ("*", "*"),
    ],
)
def test_one_text_for_each_host(host: str, canonical: str) -> None:
    assert canonical_host(host) == canonical


@pytest.mark.parametrize(
    ("host", "is_inside"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("11.0.0.1", False),
        ("127.0.0.1", True),
        ("127.0.0.2", False),
        ("2001:db8::5", True),
        ("2001:DB8:0::5%eth0", True),
        ("::1", False),
        ("a-name", False),
    ],
)
def test_hosts_inside_networks(host: str, is_inside: bool) -> None:
    assert (host in Networks(["10.0.0.0/8", " 127.0.0.1", "2001:db8::/32"])) is is_inside


@pytest.mark.parametrize("text", ["10.0.0.0/33", "10.0.0.1/8", "localhost", ""])
def test_what_is_no_network_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"network|address|host bits"):
        Networks([text])
