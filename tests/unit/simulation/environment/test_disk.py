"""The disk as a whole: crashes, power losses, space, faults."""

from __future__ import annotations

import errno
import random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from millbeck.kernel.environment import Files, OpenMode
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.disk_faults import DiskCall


def _disk(seed: int = 1) -> SimDisk:
    disk = SimDisk(random.Random(seed))
    files = disk.mount()
    files.make_directory("/d")
    files.sync_directory("/")
    return disk


def _read(files: Files, path: str) -> bytes:
    file = files.open(path, OpenMode.READ)
    try:
        return file.read(1 << 20, 0)
    finally:
        file.close()


def test_a_killed_process_leaves_the_page_cache_and_loses_its_handles_and_locks() -> None:
    disk = _disk()
    files = disk.mount()
    file = files.open("/d/a", OpenMode.WRITE)
    file.write([b"unsynced"], 0)
    files.lock("/d/.lock")
    disk.unmount(files)
    for call in (lambda: file.read(1, 0), lambda: files.names("/d"), lambda: files.open("/d/a", OpenMode.READ)):
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value.errno == errno.EBADF
    after = disk.mount()
    assert _read(after, "/d/a") == b"unsynced"
    after.lock("/d/.lock").release()


def test_power_loss_forgets_and_unmounts() -> None:
    disk = _disk()
    files = disk.mount()
    kept = files.open("/d/kept", OpenMode.WRITE)
    kept.write([b"kept"], 0)
    kept.sync()
    files.sync_directory("/d")
    kept.write([b"lost"], 4)
    unlinked = files.open("/d/unnamed", OpenMode.WRITE)
    unlinked.write([b"x"], 0)
    unlinked.sync()
    disk.power_loss(survival=0.0)
    assert files.is_detached
    after = disk.mount()
    assert after.names("/d") == ["kept"]
    assert _read(after, "/d/kept")[:4] == b"kept"
    assert disk.used_bytes == after.size("/d/kept")


def test_a_drawn_survival_differs_by_seed() -> None:
    def outcome(seed: int) -> tuple[str, ...]:
        disk = _disk(seed)
        files = disk.mount()
        for name in ("a", "b", "c"):
            files.open(f"/d/{name}", OpenMode.WRITE)
        disk.power_loss()
        return tuple(disk.mount().names("/d"))

    outcomes = {outcome(seed) for seed in range(60)}
    assert () in outcomes
    assert ("a", "b", "c") in outcomes
    assert len(outcomes) > 4
    assert outcome(5) == outcome(5)


def test_a_full_disk_takes_part_of_a_write_and_none_once_it_is_full() -> None:
    landed = set()
    for seed in range(50):
        disk = _disk(seed)
        disk.faults.capacity_bytes = 100
        files = disk.mount()
        file = files.open("/d/a", OpenMode.WRITE)
        file.write([b"x" * 90], 0)
        with pytest.raises(OSError) as caught:
            file.write([b"y" * 30], 90)
        assert caught.value.errno == errno.ENOSPC
        landed.add(file.size() - 90)
        assert disk.used_bytes == file.size() <= 100
        file.write([b"z" * 90], 0)  # overwriting needs no room
    assert 0 in landed
    assert 10 in landed
    assert max(landed) == 10


def test_space_comes_back_when_the_last_holder_lets_go() -> None:
    disk = _disk()
    files = disk.mount()
    file = files.open("/d/a", OpenMode.WRITE)
    file.write([b"x" * 1000], 0)
    files.unlink("/d/a")
    assert disk.used_bytes == 1000
    file.close()
    assert disk.used_bytes == 0
    replaced, new = files.open("/d/r", OpenMode.WRITE), files.open("/d/n", OpenMode.WRITE)
    replaced.write([b"x" * 10], 0)
    new.write([b"y" * 7], 0)
    replaced.close()
    files.rename("/d/n", "/d/r")
    assert disk.used_bytes == 7
    new.truncate(3)
    assert disk.used_bytes == 3
    disk.faults.capacity_bytes = 10
    assert files.free_bytes("/d") == 7
    with pytest.raises(OSError):
        new.allocate(50)


def test_planned_faults_hit_the_call_and_path_they_name() -> None:
    disk = _disk()
    files = disk.mount()
    log, index = files.open("/d/1.log", OpenMode.WRITE), files.open("/d/1.index", OpenMode.WRITE)
    disk.fail_next(DiskCall.WRITE, path_part=".log", count=2)
    disk.fail_next(DiskCall.READ, path_part=".index")
    index.write([b"fine"], 0)
    for _ in range(2):
        with pytest.raises(OSError) as caught:
            log.write([b"data"], 0)
        assert caught.value.errno == errno.EIO
    log.write([b"data"], 0)
    with pytest.raises(OSError):
        index.read(4, 0)
    assert index.read(4, 0) == b"fine"


def test_a_failed_sync_is_told_once_and_loses_the_pages() -> None:
    disk = _disk()
    files = disk.mount()
    file = files.open("/d/a", OpenMode.WRITE)
    files.sync_directory("/d")
    file.write([b"dropped"], 0)
    disk.fail_next(DiskCall.SYNC)
    with pytest.raises(OSError):
        file.sync()
    file.sync()
    assert file.read(10, 0) == b"dropped"
    disk.power_loss(survival=1.0)
    assert _read(disk.mount(), "/d/a") == b""


@pytest.mark.parametrize("name", ["read_error", "write_error", "sync_error"])
def test_random_faults_hit_about_as_often_as_asked(name: str) -> None:
    disk = _disk()
    file = disk.mount().open("/d/a", OpenMode.WRITE)
    file.write([b"x"], 0)
    calls = {
        "read_error": lambda: file.read(1, 0),
        "write_error": lambda: file.write([b"y"], 0),
        "sync_error": file.sync,
    }
    setattr(disk.faults, name, 0.3)
    failures = 0
    for _ in range(300):
        try:
            calls[name]()
        except OSError:
            failures += 1
    assert 50 < failures < 150


def test_cold_reads_decline() -> None:
    disk = _disk()
    file = disk.mount().open("/d/a", OpenMode.WRITE)
    file.write([b"abc"], 0)
    assert file.read_nowait(3, 0) == b"abc"
    disk.faults.cold_read = 0.5
    answers = {file.read_nowait(3, 0) for _ in range(50)}
    assert answers == {None, b"abc"}


def test_rot_flips_one_bit() -> None:
    disk = _disk()
    files = disk.mount()
    file = files.open("/d/a", OpenMode.WRITE)
    file.write([bytes(100)], 0)
    disk.rot("/d/a")
    assert sum(bin(byte).count("1") for byte in file.read(100, 0)) == 1
    with pytest.raises(ValueError, match="nothing to corrupt"):
        disk.rot("/d")


def test_calls_are_traced_and_cost_what_they_cost() -> None:
    traced: list[Any] = []
    charged: list[Any] = []
    disk = SimDisk(random.Random(1), trace=lambda *event: traced.append(event[0]), charge=charged.append)
    files = disk.mount()
    files.make_directory("/d")
    file = files.open("/d/a", OpenMode.WRITE)
    file.write([b"x"], 0)
    disk.faults.slowness = 10
    disk.faults.sync_cost_s = 0.002
    file.sync()
    files.rename("/d/a", "/d/b")
    files.sync_directory("/d")
    files.unlink("/d/b")
    assert traced == ["make directory", "create", "write", "sync", "rename", "sync directory", "unlink"]
    assert charged == [0.02, 0.02]


class DiskAgainstModel(RuleBasedStateMachine):
    """Until the power goes, the disk is a plain dictionary; after it, what was fully synced is unchanged."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = _disk(7)
        self.files = self.disk.mount()
        self.model: dict[str, bytes] = {}
        self.safe: dict[str, bytes] = {}
        self.unsettled: set[str] = set()

    @rule(name=st.sampled_from("abc"), data=st.binary(max_size=30), position=st.integers(0, 30))
    def write(self, name: str, data: bytes, position: int) -> None:
        file = self.files.open(f"/d/{name}", OpenMode.WRITE)
        file.write([data], position)
        file.close()
        old = self.model.get(name, b"")
        if data:
            old = old.ljust(position, b"\0")
            self.model[name] = old[:position] + data + old[position + len(data) :]
        else:
            self.model[name] = old
        self.unsettled.add(name)

    @rule(old=st.sampled_from("abc"), new=st.sampled_from("abc"))
    def rename(self, old: str, new: str) -> None:
        if old in self.model and old != new:
            self.files.rename(f"/d/{old}", f"/d/{new}")
            self.model[new] = self.model.pop(old)
            self.unsettled |= {old, new}

    @rule(name=st.sampled_from("abc"))
    def unlink(self, name: str) -> None:
        if name in self.model:
            self.files.unlink(f"/d/{name}")
            del self.model[name]
            self.unsettled.add(name)

    @rule()
    def sync_everything(self) -> None:
        for name in self.model:
            file = self.files.open(f"/d/{name}", OpenMode.READ)
            file.sync()
            file.close()
        self.files.sync_directory("/d")
        self.safe = dict(self.model)
        self.unsettled.clear()

    @rule()
    def crash(self) -> None:
        self.disk.unmount(self.files)
        self.files = self.disk.mount()
        self.check()

    @rule()
    def lose_power(self) -> None:
        self.disk.power_loss()
        self.files = self.disk.mount()
        found = {name: _read(self.files, f"/d/{name}") for name in self.files.names("/d")}
        for name, content in self.safe.items():
            if name not in self.unsettled:
                assert found[name] == content
        self.model, self.safe = dict(found), dict(found)
        self.unsettled.clear()

    @rule()
    def check(self) -> None:
        assert {name: _read(self.files, f"/d/{name}") for name in self.files.names("/d")} == self.model
        assert self.disk.used_bytes == sum(map(len, self.model.values()))


TestDiskAgainstModel = DiskAgainstModel.TestCase
TestDiskAgainstModel.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
