"""Real databases of Debian's packages, each in a directory of its own, on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pymysql

_STARTS_WITHIN_S = 60
USER, PASSWORD = "millbeck", "secret word"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _as_user(user: str) -> list[str]:
    """Servers of databases refuse to run as root."""
    return ["runuser", "-u", user, "--"] if os.geteuid() == 0 else []


def postgres_programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: int(each.parent.name))
    return found[-1] if found else None


def mariadb_program() -> str | None:
    return shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")


@contextmanager
def postgresql(folder: Path, options: tuple[str, ...] = ()) -> Iterator[str]:
    """A server; yields its JDBC URL, of the database shop."""
    programs = postgres_programs()
    assert programs is not None, "install Debian's package postgresql"
    run = _as_user("postgres")
    if run:
        shutil.chown(folder, "postgres")
        for parent in folder.parents[:3]:
            parent.chmod(parent.stat().st_mode | 0o011)
    storage, words, port = folder / "storage", folder / "password", free_port()
    words.write_text(PASSWORD)
    words.chmod(0o644)
    initdb = [f"--username={USER}", f"--pwfile={words}", "--auth=scram-sha-256", "--no-sync", "--encoding=UTF8"]
    subprocess.run(
        [*run, programs / "initdb", f"--pgdata={storage}", *initdb], check=True, stdout=subprocess.DEVNULL, cwd="/"
    )
    settings = ("listen_addresses=127.0.0.1", f"port={port}", "fsync=off", "unix_socket_directories=", *options)
    server = subprocess.Popen(
        [*run, programs / "postgres", "-D", storage, *(part for each in settings for part in ("-c", each))],
        stdout=subprocess.DEVNULL,
        stderr=(folder / "log").open("wb"),
        cwd="/",
    )
    login: dict[str, Any] = {"host": "127.0.0.1", "port": port, "user": USER, "password": PASSWORD}
    try:
        deadline = time.monotonic() + _STARTS_WITHIN_S
        while True:
            try:
                with psycopg.connect(**login, dbname="postgres", autocommit=True) as connection:
                    connection.execute("CREATE DATABASE shop")
                break
            except psycopg.OperationalError:
                assert server.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < deadline, "PostgreSQL does not start"
                time.sleep(0.2)
        yield f"jdbc:postgresql://127.0.0.1:{port}/shop"
    finally:
        _end(server, storage / "postmaster.pid")


@contextmanager
def mariadb(folder: Path) -> Iterator[str]:
    """A server; yields its JDBC URL, of the database shop."""
    program = mariadb_program()
    assert program is not None, "install Debian's package mariadb-server"
    run = _as_user("mysql")
    if run:
        shutil.chown(folder, "mysql")
        for parent in folder.parents[:3]:
            parent.chmod(parent.stat().st_mode | 0o011)
    storage, port = folder / "storage", free_port()
    subprocess.run(
        [*run, "mariadb-install-db", "--no-defaults", f"--datadir={storage}", "--skip-test-db",
         "--auth-root-authentication-method=normal"],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
    )  # fmt: skip
    server = subprocess.Popen(
        [*run, program, "--no-defaults", f"--datadir={storage}", f"--port={port}", "--bind-address=127.0.0.1",
         f"--socket={folder / 'socket'}", f"--pid-file={folder / 'pid'}", "--innodb-flush-log-at-trx-commit=0",
         "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=5"],
        stdout=subprocess.DEVNULL,
        stderr=(folder / "log").open("wb"),
        cwd="/",
    )  # fmt: skip
    try:
        deadline = time.monotonic() + _STARTS_WITHIN_S
        while True:
            try:
                with pymysql.connect(host="127.0.0.1", port=port, user="root").cursor() as cursor:
                    cursor.execute("CREATE DATABASE shop CHARACTER SET utf8mb4")
                    cursor.execute(f"CREATE USER '{USER}'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'")
                    cursor.execute(f"GRANT ALL ON shop.* TO '{USER}'@'127.0.0.1'")
                break
            except pymysql.err.OperationalError:
                assert server.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < deadline, "MariaDB does not start"
                time.sleep(0.2)
        yield f"jdbc:mariadb://127.0.0.1:{port}/shop"
    finally:
        _end(server, folder / "pid")


def _end(server: subprocess.Popen[bytes], pid_file: Path) -> None:
    """End the server itself, which may be a child of the process that was started."""
    try:
        os.kill(int(pid_file.read_text().split()[0]), 15)
    except (OSError, ValueError, IndexError):
        server.terminate()
    try:
        server.wait(30)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
