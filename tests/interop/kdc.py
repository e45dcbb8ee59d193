"""A Kerberos realm on loopback: MIT's KDC (Debian: krb5-kdc, krb5-admin-server, krb5-user), principals, keytabs."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from tests.e2e.server_process import free_ports

REALM = "EXAMPLE.COM"
PROGRAMS = ("kdb5_util", "kadmin.local", "krb5kdc", "kinit")
_KRB5 = """[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 rdns = false
 dns_canonicalize_hostname = false
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
"""
_KDC = """[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
 }}
"""


def missing_programs() -> list[str]:
    return [name for name in PROGRAMS if _found(name) is None]


def _found(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")


class Kdc:
    """Its configuration is that of this process and its children from the start to `close`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        (port,) = free_ports(1)
        self.config = directory / "krb5.conf"
        profile = directory / "kdc.conf"
        self.config.write_text(_KRB5.format(realm=REALM, port=port))
        profile.write_text(_KDC.format(realm=REALM, port=port, directory=directory))
        settings = {"KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(profile)}
        self._before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        with (directory / "kdc.log").open("wb") as log:
            program = _found("krb5kdc")
            assert program is not None
            self._process = subprocess.Popen([program, "-n"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline_s = time.monotonic() + 10
        while "starting" not in (directory / "kdc.log").read_text():
            assert time.monotonic() < deadline_s, (directory / "kdc.log").read_text()
            time.sleep(0.02)

    def keytab(self, principal: str) -> Path:
        """A new principal, and the keytab with its key."""
        path = self.directory / f"{principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        self._run("kadmin.local", "-q", f"ktadd -k {path} {principal}")
        assert path.exists(), principal
        return path

    def ticket_cache(self, principal: str, keytab: Path) -> Path:
        path = self.directory / f"{keytab.stem}.cache"
        self._run("kinit", "-k", "-t", str(keytab), "-c", str(path), principal)
        return path

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(10)
        for name, value in self._before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

    @staticmethod
    def _run(name: str, *arguments: str) -> None:
        program = _found(name)
        assert program is not None
        done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
