from __future__ import annotations

import errno
import random

import pytest

from millbeck.kernel.environment import OpenMode
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.files import SimFile, SimFiles
from millbeck.storage.file_cache import CachedFile, FileCache


def entries(count: int, limit: int) -> tuple[FileCache, list[CachedFile], SimFiles]:
    files = SimDisk(random.Random(1)).mount()
    cache = FileCache(files, limit)
    return cache, [cache.entry(f"/{index}", OpenMode.WRITE) for index in range(count)], files


def test_a_file_is_opened_once_and_kept() -> None:
    _, (entry,), files = entries(1, 4)
    assert entry.get() is entry.get()
    assert len(files.open_files) == 1


def test_the_limit_is_kept_by_closing_what_was_not_used_lately() -> None:
    cache, all_entries, files = entries(5, 3)
    for entry in all_entries[:3]:
        entry.get()
    cache._make_room()
    all_entries[1].get()
    all_entries[2].get()
    for entry in all_entries[3:]:
        entry.get()
        assert len(files.open_files) <= 3
    assert all_entries[0].file is None


def test_a_leased_file_is_never_closed_to_make_room() -> None:
    _, all_entries, files = entries(6, 2)
    leased = [entry.lease() for entry in all_entries[:3]]
    for entry in all_entries[3:]:
        entry.get()
    assert [entry.file for entry in all_entries[:3]] == leased
    assert all(isinstance(file, SimFile) and file in files.open_files for file in leased)


def test_above_the_limit_a_release_closes() -> None:
    cache, all_entries, _ = entries(4, 2)
    for entry in all_entries:
        entry.lease()
    assert cache.open_count == 4
    for entry in all_entries:
        entry.release()
    assert cache.open_count == 2


def test_retiring_waits_for_the_last_lease() -> None:
    _, (entry,), files = entries(1, 2)
    file = entry.lease()
    entry.lease()
    entry.retire()
    entry.release()
    assert file in files.open_files
    entry.release()
    assert not files.open_files


def test_releasing_more_often_than_leasing_is_a_mistake() -> None:
    _, (entry,), _ = entries(1, 2)
    entry.lease()
    entry.release()
    with pytest.raises(AssertionError):
        entry.release()


class Stingy(SimFiles):
    """The operating system has fewer descriptors than the cache was told."""

    def open(self, path: str, mode: OpenMode) -> SimFile:
        if len(self.open_files) >= 2:
            raise OSError(errno.EMFILE, "too many open files")
        return super().open(path, mode)


def test_when_descriptors_run_out_idle_files_give_way() -> None:
    files = Stingy(SimDisk(random.Random(1)))
    cache = FileCache(files, 100)
    all_entries = [cache.entry(f"/{index}", OpenMode.WRITE) for index in range(5)]
    all_entries[0].lease()
    for entry in all_entries:
        entry.get()
    assert all_entries[0].file is not None
    all_entries[4].lease()
    with pytest.raises(OSError, match="too many"):
        all_entries[2].get()
