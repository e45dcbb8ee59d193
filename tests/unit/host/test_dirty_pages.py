"""Unwritten pages are judged by the machine's threshold and by the smallest limit of the process's groups."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from millbeck.host import linux
from millbeck.host.dirty_pages import DirtyPages, of_this_machine

MIB = 1 << 20
PAGES_PER_MIB = MIB // resource.getpagesize()


class Machine:
    """A tree of files that say what the kernel's would: 4,000 MiB until its own flusher starts, and no limit."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.write("proc/self/cgroup", "0::/\n")
        self.write("proc/sys/vm/dirty_background_ratio", "10\n")
        self.write("cgroup/cgroup.controllers", "memory\n")
        self.dirty(0)

    def write(self, path: str, text: str) -> None:
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def limit(self, group: str, limit: int | str, name: str = "memory.max") -> None:
        self.write(f"cgroup{group}/{name}", f"{limit}\n")

    def dirty(self, mib: int, *, less_pages: int = 0, threshold_mib: int = 4000) -> None:
        """Names that contain each other stand beside each other, as in the kernel's own file."""
        self.write(
            "proc/vmstat",
            f"nr_free_pages 5\nnr_zone_write_pending 7\nnr_dirty {mib * PAGES_PER_MIB - less_pages}\nnr_writeback 9\n"
            f"nr_dirtied 1\nnr_dirty_threshold 3\nnr_dirty_background_threshold {threshold_mib * PAGES_PER_MIB}\n",
        )

    def pages(self) -> DirtyPages:
        return DirtyPages(proc=f"{self.directory}/proc", cgroup_root=f"{self.directory}/cgroup")

    def turns_at(self, mib: int) -> bool:
        """Whether pages gather from just so many on."""
        pages = self.pages()
        self.dirty(mib, less_pages=1)
        is_before = pages.should_write_back()
        self.dirty(mib)
        return not is_before and pages.should_write_back()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_pages_gather_from_a_quarter_of_the_kernels_threshold_on(machine: Machine) -> None:
    assert machine.turns_at(1000)


def test_the_counters_are_read_each_time(machine: Machine) -> None:
    pages = machine.pages()
    assert not pages.should_write_back()
    machine.dirty(3000)
    assert pages.should_write_back()
    machine.dirty(3000, threshold_mib=40_000)
    assert not pages.should_write_back()


def test_a_small_limit_of_the_group_counts_where_the_machine_is_far_from_its_own(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "0::/kubepods/one\n")
    machine.limit("/kubepods/one", 400 * MIB)
    assert machine.turns_at(10)


def test_a_limit_beyond_the_machines_threshold_changes_nothing(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "0::/one\n")
    machine.limit("/one", 400_000 * MIB)
    assert machine.turns_at(1000)


@pytest.mark.parametrize("ancestor", ["/a", "/a/b", ""])
def test_the_limit_of_an_ancestor_counts_for_all_below_it(machine: Machine, ancestor: str) -> None:
    machine.write("proc/self/cgroup", "0::/a/b/c\n")
    machine.limit("/a/b/c", 8000 * MIB)
    machine.limit(ancestor, 400 * MIB)
    assert machine.turns_at(10)


def test_a_limit_that_slows_counts_like_one_that_kills(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "0::/one\n")
    machine.limit("/one", 8000 * MIB)
    machine.limit("/one", 400 * MIB, "memory.high")
    assert machine.turns_at(10)


def test_max_is_no_limit(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "0::/one\n")
    machine.limit("/one", "max")
    machine.limit("/one", "max", "memory.high")
    assert machine.turns_at(1000)


@pytest.mark.parametrize("path", ["/", "/../../elsewhere", "/docker/not-seen-from-within"])
def test_a_container_that_sees_only_its_own_group_finds_its_limit_in_the_root(machine: Machine, path: str) -> None:
    machine.write("proc/self/cgroup", f"0::{path}\n")
    machine.write("elsewhere/memory.max", "4096\n")
    machine.write("memory.max", "4096\n")
    machine.limit("", 400 * MIB)
    assert machine.turns_at(10)


@pytest.mark.parametrize("group", ["/one", "/one/two", ""])
def test_limits_of_the_older_kind_of_groups_count_too(machine: Machine, group: str) -> None:
    machine.write("proc/self/cgroup", "9:name=systemd:/\n4:hugetlb,memory:/one/two\n1:cpu:/three\n0::/\n")
    machine.limit("/memory/one/two", 9223372036854771712, "memory.limit_in_bytes")
    machine.limit(f"/memory{group}", 400 * MIB, "memory.limit_in_bytes")
    assert machine.turns_at(10)


def test_another_share_for_the_background_counts_for_the_limit(machine: Machine) -> None:
    machine.limit("", 400 * MIB)
    machine.write("proc/sys/vm/dirty_background_ratio", "5\n")
    assert machine.turns_at(5)


def test_where_the_background_is_set_in_bytes_the_limits_share_is_the_default(machine: Machine) -> None:
    machine.limit("", 400 * MIB)
    machine.write("proc/sys/vm/dirty_background_ratio", "0\n")
    assert machine.turns_at(10)


def test_limits_are_read_once_at_the_first_question(machine: Machine) -> None:
    pages = machine.pages()
    machine.limit("", 400 * MIB)
    machine.dirty(20)
    assert pages.should_write_back()
    machine.limit("", "max")
    assert pages.should_write_back()


@pytest.mark.parametrize("missing", ["proc/vmstat", "proc/self/cgroup", "cgroup", "proc/sys/vm/dirty_background_ratio"])
def test_what_cannot_be_read_counts_as_gathering(machine: Machine, missing: str) -> None:
    machine.limit("", 400 * MIB)
    assert not machine.pages().should_write_back()
    (machine.directory / missing).rename(machine.directory / "away")
    assert machine.pages().should_write_back()


def test_groups_of_the_older_kind_that_are_not_where_they_should_be_count_as_gathering(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "4:memory:/one\n")
    assert machine.pages().should_write_back()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("proc/vmstat", ""),
        ("proc/vmstat", "nr_free_pages 5\nnr_dirty 1\n"),
        ("proc/vmstat", "nr_free_pages 5\nnr_dirty_background_threshold 1000\n"),
        ("proc/self/cgroup", "nonsense\n"),
        ("proc/sys/vm/dirty_background_ratio", "some\n"),
        ("cgroup/memory.max", "much\n"),
    ],
)
def test_what_cannot_be_understood_counts_as_gathering(machine: Machine, path: str, text: str) -> None:
    machine.limit("", 400 * MIB)
    machine.write(path, text)
    assert machine.pages().should_write_back()


def test_a_limit_that_exists_and_cannot_be_read_counts_as_gathering(machine: Machine) -> None:
    (machine.directory / "cgroup/memory.max").mkdir()
    assert machine.pages().should_write_back()


@pytest.mark.skipif(not linux.IS_LINUX, reason="only Linux has these files")
def test_this_machine_can_be_asked() -> None:
    assert of_this_machine.should_write_back() in (True, False)
