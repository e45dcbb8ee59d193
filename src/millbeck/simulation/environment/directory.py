"""Simulated directories: the names processes see, the names that are durable, and the changes in between.

A change (create, rename, unlink) is atomic. ``sync_directory`` makes the changes of one directory durable. A power loss
keeps some of the other changes, but never a change without the earlier ones it depends on: if the create of a file is
lost, so is its rename, and the file that the rename replaced remains.
"""

from __future__ import annotations

import random
from typing import Union

from millbeck.simulation.environment.inode import Inode

Entry = Union[Inode, "Directory"]


class EntryChange:
    """One atomic change: names set to entries, or to None, in one directory or two."""

    __slots__ = ("is_decided", "puts")

    def __init__(self, puts: list[tuple[Directory, str, Entry | None]]) -> None:
        self.puts = puts
        self.is_decided = False

    def commit(self) -> None:
        """Make the change durable, after the earlier changes of its directories."""
        if self.is_decided:
            return
        self.is_decided = True
        first, last = self.puts[0][0], self.puts[-1][0]
        first.commit_before(self)
        if last is not first:
            last.commit_before(self)
        for directory, name, entry in self.puts:
            if entry is None:
                directory.durable.pop(name, None)
            else:
                directory.durable[name] = entry

    def touches(self, lost: list[EntryChange]) -> bool:
        """Whether the change depends on one that was lost."""
        for earlier in lost:
            for directory, name, entry in earlier.puts:
                for own_directory, own_name, own_entry in self.puts:
                    if own_directory is directory and own_name == name:
                        return True
                    if entry is not None and (own_entry is entry or own_directory is entry):
                        return True
        return False


class Directory:
    __slots__ = ("durable", "entries", "modified_ms", "pending")

    def __init__(self, modified_ms: int) -> None:
        self.entries: dict[str, Entry] = {}
        self.durable: dict[str, Entry] = {}
        self.pending: list[EntryChange] = []
        self.modified_ms = modified_ms

    def commit_before(self, change: EntryChange) -> None:
        for position, earlier in enumerate(self.pending):
            if earlier is change:
                del self.pending[: position + 1]
                return
            earlier.commit()

    def sync(self) -> None:
        for change in list(self.pending):
            change.commit()
        self.pending.clear()


def change_entries(puts: list[tuple[Directory, str, Entry | None]]) -> None:
    """Make a change visible to processes; it is not durable yet."""
    change = EntryChange(puts)
    remembered: Directory | None = None
    for directory, name, entry in puts:
        if entry is None:
            directory.entries.pop(name, None)
        else:
            directory.entries[name] = entry
        if directory is not remembered:
            directory.pending.append(change)
            remembered = directory


def lose_power(root: Directory, generator: random.Random, survival: float) -> list[Inode]:
    """Keep or undo each pending change; returns the files that are still reachable."""
    _apply_pending(root, generator, survival, lost=[])
    reached: list[Inode] = []
    _restore(root, reached)
    return reached


def _apply_pending(directory: Directory, generator: random.Random, survival: float, lost: list[EntryChange]) -> None:
    # Real journals keep a prefix; without one, any subset may survive. Both are tried.
    is_prefix = generator.random() < 0.5
    is_cut = False
    for change in list(directory.pending):
        if change.is_decided:
            continue
        is_kept = not is_cut and generator.random() < survival and not change.touches(lost)
        if is_kept:
            change.commit()
        else:
            change.is_decided = True
            lost.append(change)
            is_cut = is_prefix
    directory.pending.clear()
    for name in sorted(set(directory.entries) | set(directory.durable)):
        for entry in (directory.entries.get(name), directory.durable.get(name)):
            if isinstance(entry, Directory):
                _apply_pending(entry, generator, survival, lost)


def _restore(directory: Directory, reached: list[Inode]) -> None:
    directory.entries = dict(directory.durable)
    for entry in directory.entries.values():
        if isinstance(entry, Directory):
            _restore(entry, reached)
        else:
            reached.append(entry)
