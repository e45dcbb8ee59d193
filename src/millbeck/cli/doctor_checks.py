"""The checks of ``millbeck doctor`` on this machine. Each check returns findings and changes nothing."""

from __future__ import annotations

import errno
import os
import resource
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

OK: Final = "ok"
WARN: Final = "warn"
FAIL: Final = "fail"

PYTHON_MIN: Final = (3, 11)
OPEN_FILES_WANTED: Final = 8192
OPEN_FILES_MIN: Final = 1024
FREE_BYTES_MIN: Final = 1 << 30
FREE_SHARE_MIN: Final = 0.10
FREE_BYTES_PLENTY: Final = 100 << 30
"""On a large disk this much free space is enough, even if it is a small fraction of the disk."""
CERTIFICATE_DAYS_WANTED: Final = 30
CERTIFICATE_DAYS_MIN: Final = 7
_MEBIBYTE: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the report; ``advice`` has the remedy when the status is not ok."""

    status: str
    subject: str
    detail: str
    advice: str = ""


def check_python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < PYTHON_MIN:
        wanted = ".".join(map(str, PYTHON_MIN))
        return Finding(status=FAIL, subject="python", detail=version, advice=f"install Python {wanted} or newer")
    return Finding(status=OK, subject="python", detail=version)


def check_compiled(is_compiled: bool, is_stale: bool) -> Finding:
    """Check whether the compiled modules are in use. ``is_stale``: a source file is newer than its extension."""
    if is_compiled:
        return Finding(status=OK, subject="data path", detail="compiled")
    if is_stale:
        detail = "running the Python files, because one was edited since the last build"
        return Finding(status=WARN, subject="data path", detail=detail, advice="run `make build`")
    return Finding(
        status=WARN,
        subject="data path",
        detail="running the Python files instead of compiled modules: same results, but a request takes "
        "several times as long",
        advice="in a source tree run `make build`; elsewhere install a wheel, or a C compiler and then millbeck again",
    )


def check_open_files(limit: int | None = None) -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE) if limit is None else (limit, limit)
    shown = "no limit" if soft == resource.RLIM_INFINITY else f"limit of {soft}"
    if soft == resource.RLIM_INFINITY or soft >= OPEN_FILES_WANTED:
        return Finding(status=OK, subject="open files", detail=shown)
    is_enough = hard == resource.RLIM_INFINITY or hard >= OPEN_FILES_WANTED
    advice = f"ulimit -n {OPEN_FILES_WANTED}" + ("" if is_enough else f"; the hard limit is {hard}")
    if soft >= OPEN_FILES_MIN:
        return Finding(
            status=WARN, subject="open files", detail=f"{shown}: connections count as open files too", advice=advice
        )
    return Finding(status=FAIL, subject="open files", detail=f"{shown} is too low for a node", advice=advice)


def check_port(host: str, port: int, option: str, directory: str) -> Finding:
    """Check that a node can listen on the port, unless the node that runs on ``directory`` already does."""
    subject = f"port {port}"
    if port == 0:
        return Finding(status=OK, subject=subject, detail="a free port will be chosen")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except PermissionError:
            return Finding(
                status=FAIL, subject=subject, detail="not allowed", advice=f"choose one above 1023 with {option}"
            )
        except OSError as error:
            from millbeck.cli.nodes.ports import has_open, holder_of, listening_process

            if error.errno == errno.EADDRINUSE and (locks := _locks_held(directory)):
                process = listening_process(port)
                if process is None:
                    detail = f"in use, presumably by the node that runs on {directory}"
                    return Finding(status=OK, subject=subject, detail=detail)
                if any(has_open(process, lock) for lock in locks):
                    detail = f"in use by the node that runs on {directory} (process {process})"
                    return Finding(status=OK, subject=subject, detail=detail)
            holder = holder_of(port)
            return Finding(
                status=WARN,
                subject=subject,
                detail=f"{error.strerror or error}{f' by {holder}' if holder else ''}",
                advice=f"stop that process, or choose another port with {option}; if it is your node, give its --data",
            )
    return Finding(status=OK, subject=subject, detail="free")


def check_directory(directory: str) -> Iterator[Finding]:
    """Check that a node can write to the directory, whether it is formatted or in use, and the free space."""
    subject = f"data {directory}"
    existing = _nearest_existing(directory)
    if not os.access(existing, os.W_OK | os.X_OK):
        advice = "give this user write permission there, or choose another directory with --data"
        yield Finding(status=FAIL, subject=subject, detail=f"{existing} cannot be written to", advice=advice)
        return
    members = _members(directory)
    for member in members:
        yield from _state_of(member, f"data {member}")
    if not members:
        yield from _state_of(directory, subject)
    status = os.statvfs(existing)
    yield check_room("disk", status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize)


def check_room(subject: str, free_bytes: int, total_bytes: int) -> Finding:
    """Check the free space of a disk: FAIL when the next segment may not fit, WARN well before."""
    from millbeck.storage.room import is_full

    share = free_bytes / total_bytes if total_bytes > 0 else 1.0
    detail = f"{free_bytes // _MEBIBYTE} MiB free of {total_bytes // _MEBIBYTE} MiB ({share:.0%})"
    if is_full(free_bytes):
        advice = "appends fail or soon will: bound topics with retention.bytes, or add disk space"
        return Finding(status=FAIL, subject=subject, detail=detail, advice=advice)
    if free_bytes < FREE_BYTES_MIN or (share < FREE_SHARE_MIN and free_bytes < FREE_BYTES_PLENTY):
        advice = "free disk space, or bound topics with retention.bytes: appends fail on a full disk"
        return Finding(status=WARN, subject=subject, detail=detail, advice=advice)
    return Finding(status=OK, subject=subject, detail=detail)


def check_certificates(path: str) -> Iterator[Finding]:
    """Check that the keys and certificates of the listeners in a server.properties are usable, and when they expire."""
    import time

    from millbeck.cli.settings import node_config
    from millbeck.host import real_environment
    from millbeck.kernel.errors import InvalidConfig
    from millbeck.server.network.tls import load_listener
    from millbeck.server.network.tls_renewal import check_trusted_by_itself

    config, environment = node_config(path, (), os.environ), real_environment()
    for address in (*config.client_addresses(), *config.controller_addresses()):
        if not address.is_encrypted:
            continue
        subject = f"certificate of {address.name}"
        try:
            loaded = load_listener(config.ssl(address.name), address.name, environment)
            if address.name in config.node_listeners:
                check_trusted_by_itself(loaded, environment.network)
        except InvalidConfig as error:
            advice = f"correct it in {path}; docs/security.md lists the settings"
            yield Finding(status=FAIL, subject=subject, detail=error.message, advice=advice)
        else:
            assert loaded.material.own is not None
            soonest = min(loaded.material.own.chain, key=lambda each: each.not_after_ms)
            yield check_days_left(subject, soonest.subject, soonest.days_left(int(time.time() * 1000)))


def check_days_left(subject: str, owner: str, days: float) -> Finding:
    advice = "renew it and replace the file: a running node reloads it automatically"
    if days <= 0:
        return Finding(status=FAIL, subject=subject, detail=f"{owner} has expired", advice=advice)
    status = FAIL if days < CERTIFICATE_DAYS_MIN else WARN if days < CERTIFICATE_DAYS_WANTED else OK
    detail = f"{owner}, {int(days)} days left"
    return Finding(status=status, subject=subject, detail=detail, advice="" if status == OK else advice)


def _members(directory: str) -> list[str]:
    """The node directories that `millbeck up --nodes` created in a directory, if any."""
    found: list[str] = []
    while os.path.exists(os.path.join(member := os.path.join(directory, f"node-{len(found) + 1}"), "meta.properties")):
        found.append(member)
    return found


def _locks_held(directory: str) -> list[str]:
    """The lock files held in a data directory: of a single node, or of the nodes of `millbeck up --nodes`."""
    from millbeck.host import real_environment
    from millbeck.storage.directory import LOCK_FILE_NAME

    files = real_environment().files
    held = []
    for each in _members(directory) or [directory]:
        lock = os.path.join(each, LOCK_FILE_NAME)
        if os.path.exists(lock):
            try:
                files.lock(lock).release()
            except BlockingIOError:
                held.append(lock)
    return held


def _nearest_existing(directory: str) -> str:
    path = os.path.abspath(directory)
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def _state_of(directory: str, subject: str) -> Iterator[Finding]:
    from millbeck.host import real_environment
    from millbeck.storage.directory import CLEAN_SHUTDOWN_FILE_NAME
    from millbeck.storage.properties import MetaPropertiesError, read_meta_properties

    if not os.path.exists(directory):
        yield Finding(status=OK, subject=subject, detail="does not exist yet; created on first start")
        return
    files = real_environment().files
    try:
        meta = read_meta_properties(files, directory)
    except (MetaPropertiesError, OSError) as error:
        advice = "restore meta.properties, or move the directory away"
        yield Finding(status=FAIL, subject=subject, detail=str(error), advice=advice)
        return
    if meta is None:
        if os.listdir(directory):
            advice = "choose an empty directory with --data, unless these files may stay beside the logs"
            yield Finding(status=WARN, subject=subject, detail="holds files but no logs", advice=advice)
        else:
            yield Finding(status=OK, subject=subject, detail="empty; formatted on first start")
        return
    owner = f"cluster {meta.cluster_id}, node {meta.node_id}"
    if _locks_held(directory):
        yield Finding(status=OK, subject=subject, detail=f"in use by a running node ({owner})")
        return
    if os.path.exists(os.path.join(directory, CLEAN_SHUTDOWN_FILE_NAME)):
        yield Finding(status=OK, subject=subject, detail=f"shut down cleanly ({owner})")
        return
    yield Finding(
        status=WARN,
        subject=subject,
        detail=f"not shut down cleanly ({owner})",
        advice="nothing to do: the next start recovers the end of each log, which takes a little longer",
    )
