"""A PostgreSQL server of its own in a directory of its own, on a free port of the loopback."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

DATABASE = "shop"


def bin_directory() -> Path | None:
    """Debian's newest server; None when there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return found[-1] if found else None


class PostgresServer:
    """A server whose superuser is ``postgres``; with a password for logins over TCP."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        found = bin_directory()
        assert found is not None, "apt-get install postgresql"
        self._bin = found
        self.settings = {
            "wal_level": "logical",
            "max_replication_slots": "12",
            "max_wal_senders": "12",
            "fsync": "off",
            "shared_buffers": "64MB",
            "wal_sender_timeout": "10s",
            **(settings or {}),
        }
        self.password = "pw-of-the-tests"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.directory = Path(tempfile.mkdtemp(prefix="millbeck-pg-"))

    def __enter__(self) -> Self:
        self._as_postgres("chown-me")
        password_file = self.directory / "password"
        password_file.write_text(self.password)
        self._own(password_file)
        self._as_postgres(
            str(self._bin / "initdb"), "-D", self._data, "-U", "postgres", "-A", "scram-sha-256", "-N",
            f"--pwfile={password_file}", "-E", "UTF8", "--locale=C.UTF-8",
        )  # fmt: skip
        self.start()
        with self.connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop("immediate")
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def _data(self) -> str:
        return str(self.directory / "data")

    def start(self) -> None:
        options = " ".join(f"-c {name}={text}" for name, text in self.settings.items())
        self._as_postgres(
            str(self._bin / "pg_ctl"), "-D", self._data, "-w", "-l", str(self.directory / "log"), "-o",
            f"{options} -c listen_addresses=127.0.0.1 -p {self.port} -k {self.directory}", "start",
        )  # fmt: skip

    def stop(self, mode: str = "fast") -> None:
        self._as_postgres(str(self._bin / "pg_ctl"), "-D", self._data, "-w", "-m", mode, "stop", check=False)

    def log(self) -> str:
        return (self.directory / "log").read_text()

    def connect(self, database: str = DATABASE, **options: Any) -> psycopg.Connection[Any]:
        given: dict[str, Any] = {
            "host": "127.0.0.1",
            "port": self.port,
            "user": "postgres",
            "password": self.password,
            "dbname": database,
            "autocommit": True,
            **options,
        }
        return psycopg.connect(**given)

    def connector_settings(self, **more: str) -> dict[str, str]:
        """Settings of a connector to this server; underscores in names are dots."""
        return {
            "name": "shop",
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": "127.0.0.1",
            "database.port": str(self.port),
            "database.user": "postgres",
            "database.password": self.password,
            "database.dbname": DATABASE,
            "topic.prefix": "shop",
            "slot.name": "shop",
            "publication.name": "shop",
            **{name.replace("_", "."): text for name, text in more.items()},
        }

    def _own(self, path: Path) -> None:
        if os.getuid() == 0:
            found = pwd.getpwnam("postgres")
            os.chown(path, found.pw_uid, found.pw_gid)

    def _as_postgres(self, *line: str, check: bool = True) -> None:
        """Run as the user ``postgres``, since the server refuses to be root."""
        self._own(self.directory)
        if line == ("chown-me",):
            return
        user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}
        done = subprocess.run(
            line,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd="/",
            **user,  # type: ignore[call-overload]
        )
        if check and done.returncode:
            raise RuntimeError(f"{line[0]}: {done.stdout}{done.stderr}")


def wait_until(condition: Any, timeout_s: float = 20.0, what: str = "it") -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.05)
