"""What ``millbeck doctor`` looks at on this machine. Each check returns findings and changes nothing."""

from __future__ import annotations

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
FREE_SHARE_MIN: Final = 0.05
_MEBIBYTE: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the report; ``advice`` says what to do about anything that is not ok."""

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


def check_kernels(is_compiled: bool) -> Finding:
    if is_compiled:
        return Finding(status=OK, subject="data path", detail="compiled")
    return Finding(
        status=WARN,
        subject="data path",
        detail="plain Python, at least in part: correct, but a request takes several times as long",
        advice="install a wheel of millbeck, or a C compiler before installing from source",
    )


def check_open_files(limit: int | None = None) -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE) if limit is None else (limit, limit)
    shown = "no limit" if soft == resource.RLIM_INFINITY else f"limit of {soft}"
    if soft == resource.RLIM_INFINITY or soft >= OPEN_FILES_WANTED:
        return Finding(status=OK, subject="open files", detail=shown)
    is_enough = hard == resource.RLIM_INFINITY or hard >= OPEN_FILES_WANTED
    advice = f"ulimit -n {OPEN_FILES_WANTED}" + ("" if is_enough else f"; an administrator raised it only to {hard}")
    if soft >= OPEN_FILES_MIN:
        return Finding(
            status=WARN, subject="open files", detail=f"{shown}: connections count as files too", advice=advice
        )
    return Finding(status=FAIL, subject="open files", detail=f"{shown} is too few for a node", advice=advice)


def check_port(host: str, port: int, option: str) -> Finding:
    """Whether a node could listen there."""
    subject = f"port {port}"
    if port == 0:
        return Finding(status=OK, subject=subject, detail="a free one will be taken")
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
            from millbeck.cli.ports import holder_of

            holder = holder_of(port)
            return Finding(
                status=WARN,
                subject=subject,
                detail=f"{error.strerror or error}{f' by {holder}' if holder else ''}",
                advice=f"stop what uses it, or choose another with {option}; if it is your node, all is well",
            )
    return Finding(status=OK, subject=subject, detail="free")


def check_directory(directory: str) -> Iterator[Finding]:
    """Whether a node could keep its logs there, what is there already, and how much room is left."""
    subject = f"data {directory}"
    existing = _nearest_existing(directory)
    if not os.access(existing, os.W_OK | os.X_OK):
        advice = "give this user the right to write there, or choose another directory with --data"
        yield Finding(status=FAIL, subject=subject, detail=f"{existing} cannot be written to", advice=advice)
        return
    members = _members(directory)
    for member in members:
        yield from _state_of(member, f"data {member}")
    if not members:
        yield from _state_of(directory, subject)
    status = os.statvfs(existing)
    free, total = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    detail = f"{free // _MEBIBYTE} MiB free of {total // _MEBIBYTE} MiB"
    if free < FREE_BYTES_MIN or (total and free / total < FREE_SHARE_MIN):
        advice = "make room, or bound topics with retention.bytes: a full disk refuses appends"
        yield Finding(status=WARN, subject="disk", detail=detail, advice=advice)
    else:
        yield Finding(status=OK, subject="disk", detail=detail)


def _members(directory: str) -> list[str]:
    """The directories of the nodes that `millbeck up --nodes` keeps in it, if it does."""
    found: list[str] = []
    while os.path.exists(os.path.join(member := os.path.join(directory, f"node-{len(found) + 1}"), "meta.properties")):
        found.append(member)
    return found


def _nearest_existing(directory: str) -> str:
    path = os.path.abspath(directory)
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def _state_of(directory: str, subject: str) -> Iterator[Finding]:
    from millbeck.host import real_environment
    from millbeck.storage.directory import CLEAN_SHUTDOWN_FILE_NAME, LOCK_FILE_NAME
    from millbeck.storage.properties import MetaPropertiesError, read_meta_properties

    if not os.path.exists(directory):
        yield Finding(status=OK, subject=subject, detail="not there yet; made on first start")
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
            advice = "choose an empty directory with --data, unless the files in it are yours to share"
            yield Finding(status=WARN, subject=subject, detail="holds files but no logs", advice=advice)
        else:
            yield Finding(status=OK, subject=subject, detail="empty; made ready on first start")
        return
    owner = f"cluster {meta.cluster_id}, node {meta.node_id}"
    lock = os.path.join(directory, LOCK_FILE_NAME)
    if os.path.exists(lock):
        try:
            files.lock(lock).release()
        except BlockingIOError:
            yield Finding(status=OK, subject=subject, detail=f"in use by a running node ({owner})")
            return
    if os.path.exists(os.path.join(directory, CLEAN_SHUTDOWN_FILE_NAME)):
        yield Finding(status=OK, subject=subject, detail=f"closed cleanly ({owner})")
        return
    yield Finding(
        status=WARN,
        subject=subject,
        detail=f"not closed cleanly ({owner})",
        advice="nothing to do: the next start reads the end of each log again, which takes a little longer",
    )
