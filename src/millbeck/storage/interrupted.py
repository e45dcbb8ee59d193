"""Completes or undoes work that a crash interrupted in a partition's directory, as Kafka does.

``.deleted`` and ``.tmp`` files are removed. ``.swap`` files are segments whose cleaning had finished: the segments
they replace are removed, and they are renamed into place. ``.cleaned`` files belong to an unfinished cleaning and are
removed, with any ``.swap`` file at or after the lowest of them whose source segment is still there. Index files
without a ``.log`` are removed too.

This may itself be interrupted by a crash and is then repeated at the next start. The files that decide what to do
therefore stay until the result is durable: ``.cleaned`` files are removed after the ``.swap`` files they cancel, and
``.swap`` files are renamed after the segments they replace have been removed.
"""

from __future__ import annotations

from millbeck.kernel.environment import Files, OpenMode
from millbeck.kernel.errors import CorruptMessage
from millbeck.records.batch import HEADER_SIZE, read_header
from millbeck.storage.atomic_file import TEMPORARY_SUFFIX
from millbeck.storage.retention import DELETED_SUFFIX
from millbeck.storage.segment import INDEX_SUFFIXES, LOG_SUFFIX

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

_QUORUM_SNAPSHOT_DELETED = ".checkpoint.deleted"
"""Suffix of the metadata log's snapshots, which the metadata log handles itself."""
_DIGITS = 20


def offset_of(name: str) -> int:
    """The offset in the name of a segment's or snapshot's file; -1 for other files."""
    digits, dot, _ = name.partition(".")
    return int(digits) if dot and len(digits) == _DIGITS and digits.isascii() and digits.isdigit() else -1


def complete_or_undo(files: Files, directory: str, names: list[str]) -> list[str]:
    """Complete or undo interrupted work; returns the names of the files that remain."""
    unsettled = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, TEMPORARY_SUFFIX)
    if any(name.endswith(unsettled) for name in names):
        _remove_leftovers(files, directory, names)
        names = files.names(directory)
    present = frozenset(names)
    orphans = [
        name
        for name in names
        if name.endswith(INDEX_SUFFIXES) and offset_of(name) >= 0 and name.partition(".")[0] + LOG_SUFFIX not in present
    ]
    for name in orphans:
        remove(files, directory, name)
    return [name for name in names if name not in orphans]


def remove(files: Files, directory: str, name: str) -> None:
    try:
        files.unlink(f"{directory}/{name}")
    except FileNotFoundError:
        pass


def _remove_leftovers(files: Files, directory: str, names: list[str]) -> None:
    for name in names:
        is_deleted = name.endswith(DELETED_SUFFIX) and not name.endswith(_QUORUM_SNAPSHOT_DELETED)
        if is_deleted or name.endswith(TEMPORARY_SUFFIX):
            remove(files, directory, name)
    cleaned = [name for name in names if name.endswith(CLEANED_SUFFIX)]
    swaps = [name for name in names if name.endswith(SWAP_SUFFIX)]
    if cleaned:
        lowest = min(offset_of(name) for name in cleaned)
        present = frozenset(names)
        for name in [name for name in swaps if offset_of(name) >= lowest]:
            if name.partition(".")[0] + LOG_SUFFIX not in present:
                # The segment it replaces has been removed, so this swap must be completed, even if a later cleaning
                # had begun.
                continue
            remove(files, directory, name)
            swaps.remove(name)
        files.sync_directory(directory)
    for name in cleaned:
        remove(files, directory, name)
    if swaps:
        _finish_swap(files, directory, swaps)


def _finish_swap(files: Files, directory: str, swaps: list[str]) -> None:
    for name in swaps:
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            first = offset_of(name)
            after = max(first + 1, _end_offset(files, f"{directory}/{name}", first))
            for other in files.names(directory):
                # An index removed here may already belong to the new segment; it will be rebuilt.
                if other.endswith((LOG_SUFFIX, *INDEX_SUFFIXES)) and first <= offset_of(other) < after:
                    remove(files, directory, other)
    files.sync_directory(directory)
    for name in swaps:
        path = f"{directory}/{name}"
        files.rename(path, path.removesuffix(SWAP_SUFFIX))
    files.sync_directory(directory)


def _end_offset(files: Files, path: str, base_offset: int) -> int:
    """The offset after the last whole batch in a segment's file."""
    end_offset, position = base_offset, 0
    file = files.open(path, OpenMode.READ)
    try:
        while True:
            header = read_header(file.read(HEADER_SIZE, position))
            end_offset = header.next_offset
            position += header.size_bytes
    except CorruptMessage:
        return end_offset
    finally:
        file.close()
