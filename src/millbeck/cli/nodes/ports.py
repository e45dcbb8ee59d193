"""Check that a node can listen on its ports before anything is written, and find the process that holds one."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from typing import Final

WILDCARDS: Final = ("", "0.0.0.0", "::")
_LISTENING: Final = "0A"
_COMMAND_CHARACTERS_MAX: Final = 60


class PortUnusable(Exception):
    """An address that cannot be listened on: the reason, and the process that holds it if known."""

    def __init__(self, message: str, *, is_taken: bool) -> None:
        super().__init__(message)
        self.is_taken = is_taken


def check_port_is_free(host: str, port: int) -> None:
    """Bind the address briefly; raises `PortUnusable`. Port 0 is always free."""
    where = f"{f'[{host}]' if ':' in host else host}:{port}"
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise PortUnusable(f"cannot listen on {where}: {error.strerror or error}", is_taken=False) from error
    for family, _, _, _, address in found:
        try:
            _listen(family, address, port)
        except OSError as error:
            if error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL) and len(found) > 1:
                continue  # A host without IPv4 or IPv6 can still use the other.
            is_taken = error.errno == errno.EADDRINUSE
            holder = holder_of(port) if is_taken else None
            by = f" by {holder}" if holder else ""
            reason = f"{(error.strerror or str(error)).lower()}{by}"
            raise PortUnusable(f"cannot listen on {where}: {reason}", is_taken=is_taken) from error


def _listen(family: socket.AddressFamily, address: tuple[object, ...], port: int) -> None:
    if port == 0:
        return
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        probe.bind(address)
        probe.listen(1)


def holder_of(port: int) -> str | None:
    """The process that listens on a port, with its command line, if this user may see it (Linux)."""
    process = listening_process(port)
    return f"process {process} ({_command_of(process)})" if process is not None else None


def listening_process(port: int) -> str | None:
    """The id of the process that listens on a port, if this user may see it (Linux)."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    if not sockets:
        return None
    for process in filter(str.isdigit, _names_in("/proc")):
        if not sockets.isdisjoint(_open_by(process)):
            return process
    return None


def has_open(process: str, path: str) -> bool:
    """Whether the process has the file open, if this user may see it (Linux)."""
    return os.path.realpath(path) in _open_by(process)


def _open_by(process: str) -> Iterator[str]:
    for descriptor in _names_in(f"/proc/{process}/fd"):
        try:
            yield os.readlink(f"/proc/{process}/fd/{descriptor}")
        except OSError:
            continue


def _listening_inodes(port: int) -> list[str]:
    inodes = []
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(path, encoding="ascii") as file:
                rows = [line.split() for line in file]
        except OSError:
            continue
        inodes += [row[9] for row in rows[1:] if row[3] == _LISTENING and int(row[1].rpartition(":")[2], 16) == port]
    return inodes


def _command_of(process: str) -> str:
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            command = file.read(1000).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        command = ""
    return command if len(command) <= _COMMAND_CHARACTERS_MAX else f"{command[: _COMMAND_CHARACTERS_MAX - 3]}..."


def _names_in(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
