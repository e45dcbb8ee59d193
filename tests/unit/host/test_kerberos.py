"""Kerberos without its package: each use says what to install. With it, tests/interop/test_gssapi.py tries it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from millbeck.host.kerberos import HostKerberos
from millbeck.kernel.kerberos import KerberosFailed, KerberosLogin

LOGIN = KerberosLogin(principal="kafka/host@REALM", keytab="/nowhere")
USES: dict[str, Callable[[HostKerberos], object]] = {
    "accept": lambda kerberos: kerberos.accept(LOGIN),
    "initiate": lambda kerberos: kerberos.initiate(LOGIN, "kafka", "host"),
    "check": lambda kerberos: kerberos.check_acceptor(LOGIN),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_missing_package_is_named(use: Callable[[HostKerberos], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(KerberosFailed, match=r"pip install 'millbeck\[kerberos\]'"):
        use(HostKerberos())


def test_without_the_package_there_is_no_realm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    assert HostKerberos().default_realm() == ""
