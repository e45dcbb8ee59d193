"""What every disk promises."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from millbeck.kernel.environment import Environment, OpenMode

if TYPE_CHECKING:
    from tests.contract.conftest import Machine


def _written(machine: Machine, name: str, content: bytes) -> str:
    path = f"{machine.directory}/{name}"
    file = machine.files.open(path, OpenMode.WRITE)
    file.write([content], 0)
    file.close()
    return path


def _content(machine: Machine, path: str) -> bytes:
    file = machine.files.open(path, OpenMode.READ)
    try:
        return file.read(file.size() + 1, 0)
    finally:
        file.close()


def test_a_read_is_short_only_at_the_end_of_the_file(machine: Machine) -> None:
    file = machine.files.open(_written(machine, "a", b"0123456789"), OpenMode.READ)
    assert file.read(4, 2) == b"2345"
    assert file.read(100, 6) == b"6789"
    assert file.read(5, 10) == b""
    assert file.read(5, 1000) == b""


def test_a_read_that_does_not_wait_equals_a_read_or_declines(machine: Machine) -> None:
    file = machine.files.open(_written(machine, "a", b"0123456789"), OpenMode.READ)
    for size, position in ((4, 2), (100, 6), (5, 10), (5, 1000)):
        answer = file.read_nowait(size, position)
        assert answer is None or answer == file.read(size, position)
        if not file.reads_nowait:
            assert answer is None
    assert file.reads_nowait == (machine.kind != "portable")


def test_a_read_that_counts_equals_a_read(machine: Machine) -> None:
    file = machine.files.open(_written(machine, "a", b"0123456789"), OpenMode.READ)
    for size, position in ((4, 2), (100, 6), (5, 10), (5, 1000)):
        answer, disk_bytes = file.read_counted(size, position)
        assert answer == file.read(size, position)
        # Just written, so it is in memory; who cannot tell counts everything.
        assert disk_bytes in (0, len(answer))


def test_all_buffers_are_written_one_after_another(machine: Machine) -> None:
    file = machine.files.open(f"{machine.directory}/a", OpenMode.WRITE)
    file.write([b"ab", bytearray(b"cd"), memoryview(b"xefx")[1:3], b"", b"g"], 0)
    file.write([], 3)
    assert file.read(100, 0) == b"abcdefg"


def test_more_buffers_than_one_system_call_takes(machine: Machine) -> None:
    file = machine.files.open(f"{machine.directory}/a", OpenMode.WRITE)
    buffers = [b"%05d" % number for number in range(2500)]
    file.write(buffers, 7)
    assert file.size() == 7 + 12500
    assert file.read(20000, 7) == b"".join(buffers)


def test_a_write_past_the_end_leaves_zeros_between(machine: Machine) -> None:
    file = machine.files.open(f"{machine.directory}/a", OpenMode.WRITE)
    file.write([b"end"], 5)
    assert file.read(100, 0) == b"\0\0\0\0\0end"


def test_a_write_in_the_middle_keeps_the_rest(machine: Machine) -> None:
    path = _written(machine, "a", b"0123456789")
    file = machine.files.open(path, OpenMode.WRITE)
    file.write([b"ab", b"cd"], 3)
    assert _content(machine, path) == b"012abcd789"


def test_a_file_opened_for_reading_is_not_written(machine: Machine) -> None:
    path = _written(machine, "a", b"old")
    file = machine.files.open(path, OpenMode.READ)
    with pytest.raises(OSError) as caught:
        file.write([b"new"], 0)
    assert caught.value.errno == errno.EBADF
    assert _content(machine, path) == b"old"


def test_opening_for_reading_needs_the_file_and_for_writing_the_directory(machine: Machine) -> None:
    with pytest.raises(FileNotFoundError):
        machine.files.open(f"{machine.directory}/missing", OpenMode.READ)
    with pytest.raises(FileNotFoundError):
        machine.files.open(f"{machine.directory}/missing/a", OpenMode.WRITE)
    assert machine.files.names(machine.directory) == []


def test_opening_for_writing_keeps_what_is_there(machine: Machine) -> None:
    path = _written(machine, "a", b"kept")
    assert machine.files.open(path, OpenMode.WRITE).read(10, 0) == b"kept"


def test_after_close_every_call_but_close_fails(machine: Machine) -> None:
    file = machine.files.open(f"{machine.directory}/a", OpenMode.WRITE)
    file.close()
    file.close()
    for call in (lambda: file.read(1, 0), lambda: file.write([b"x"], 0), file.size, file.sync):
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value.errno == errno.EBADF


def test_truncate_cuts_and_extends(machine: Machine) -> None:
    file = machine.files.open(_written(machine, "a", b"0123456789"), OpenMode.WRITE)
    file.truncate(4)
    assert file.read(100, 0) == b"0123"
    file.truncate(6)
    assert file.read(100, 0) == b"0123\0\0"


def test_allocate_grows_and_never_shrinks(machine: Machine) -> None:
    file = machine.files.open(_written(machine, "a", b"0123456789"), OpenMode.WRITE)
    file.allocate(4)
    assert file.size() == 10
    file.allocate(64)
    assert file.read(100, 0) == b"0123456789" + bytes(54)


def test_sync_and_writeback_change_nothing_that_is_seen(machine: Machine) -> None:
    file = machine.files.open(f"{machine.directory}/a", OpenMode.WRITE)
    file.write([b"abc"], 0)
    file.start_writeback(0, 3)
    file.sync()
    machine.files.sync_directory(machine.directory)
    assert file.read(10, 0) == b"abc"


def test_names_are_sorted(machine: Machine) -> None:
    for name in ("b", "a.log", "a", "C"):
        _written(machine, name, b"")
    machine.files.make_directory(f"{machine.directory}/aa")
    assert machine.files.names(machine.directory) == ["C", "a", "a.log", "aa", "b"]


def test_names_of_what_is_no_directory(machine: Machine) -> None:
    with pytest.raises(FileNotFoundError):
        machine.files.names(f"{machine.directory}/missing")
    with pytest.raises(NotADirectoryError):
        machine.files.names(_written(machine, "a", b""))


def test_directories_are_made_with_their_parents_and_twice(machine: Machine) -> None:
    path = f"{machine.directory}/x/y/z"
    machine.files.make_directory(path)
    machine.files.make_directory(path)
    assert machine.files.is_directory(path)
    assert machine.files.exists(path)
    with pytest.raises(FileExistsError):
        machine.files.make_directory(_written(machine, "a", b""))


def test_what_exists_and_what_it_is(machine: Machine) -> None:
    path = _written(machine, "a", b"abc")
    assert machine.files.exists(path)
    assert not machine.files.is_directory(path)
    assert machine.files.size(path) == 3
    assert not machine.files.exists(path + "x")
    assert not machine.files.is_directory(path + "x")
    with pytest.raises(FileNotFoundError):
        machine.files.size(path + "x")


def test_modified_time_follows_the_wall_clock(machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        before = environment.clock.wall_ms()
        path = _written(machine, "a", b"abc")
        return before, environment.files.modified_ms(path), environment.clock.wall_ms()

    before, modified, after = machine.run(scenario)
    assert before - 20 <= modified <= after + 20


def test_rename_replaces_and_leaves_open_files_alone(machine: Machine) -> None:
    old, new = _written(machine, "old", b"old content"), _written(machine, "new", b"replaced")
    replaced = machine.files.open(new, OpenMode.READ)
    moved = machine.files.open(old, OpenMode.READ)
    machine.files.rename(old, new)
    assert machine.files.names(machine.directory) == ["new"]
    assert _content(machine, new) == b"old content"
    assert replaced.read(100, 0) == b"replaced"
    assert moved.read(100, 0) == b"old content"


def test_rename_of_a_directory_takes_what_is_in_it(machine: Machine) -> None:
    machine.files.make_directory(f"{machine.directory}/t-0")
    _written(machine, "t-0/a", b"abc")
    machine.files.rename(f"{machine.directory}/t-0", f"{machine.directory}/t-0.deleted")
    assert _content(machine, f"{machine.directory}/t-0.deleted/a") == b"abc"
    assert not machine.files.exists(f"{machine.directory}/t-0")


def test_rename_never_swallows_a_directory(machine: Machine) -> None:
    machine.files.make_directory(f"{machine.directory}/full")
    machine.files.make_directory(f"{machine.directory}/other")
    _written(machine, "full/a", b"abc")
    with pytest.raises(OSError):
        machine.files.rename(f"{machine.directory}/other", f"{machine.directory}/full")
    with pytest.raises(IsADirectoryError):
        machine.files.rename(_written(machine, "file", b""), f"{machine.directory}/full")
    with pytest.raises(FileNotFoundError):
        machine.files.rename(f"{machine.directory}/missing", f"{machine.directory}/new")
    assert machine.files.names(f"{machine.directory}/full") == ["a"]


def test_an_unlinked_file_stays_readable_while_it_is_open(machine: Machine) -> None:
    path = _written(machine, "a", b"abc")
    file = machine.files.open(path, OpenMode.READ)
    machine.files.unlink(path)
    assert machine.files.names(machine.directory) == []
    assert file.read(10, 0) == b"abc"
    with pytest.raises(FileNotFoundError):
        machine.files.unlink(path)


def test_remove_tree_takes_everything_below_and_must_find_it(machine: Machine) -> None:
    machine.files.make_directory(f"{machine.directory}/x/y")
    _written(machine, "x/a", b"1")
    _written(machine, "x/y/b", b"2")
    machine.files.remove_tree(f"{machine.directory}/x")
    assert machine.files.names(machine.directory) == []
    with pytest.raises(FileNotFoundError):
        machine.files.remove_tree(f"{machine.directory}/x")


def test_a_lock_has_one_holder_on_the_machine(machine: Machine) -> None:
    path = f"{machine.directory}/.lock"
    lock = machine.files.lock(path)
    for files in (machine.files, machine.other_files):
        with pytest.raises(BlockingIOError):
            files.lock(path)
    lock.release()
    lock.release()
    other = machine.other_files.lock(path)
    with pytest.raises(BlockingIOError):
        machine.files.lock(path)
    other.release()
    assert machine.files.names(machine.directory) == [".lock"]


def test_free_space_is_counted(machine: Machine) -> None:
    assert machine.files.free_bytes(machine.directory) > 1 << 20
    assert machine.files.total_bytes(machine.directory) >= machine.files.free_bytes(machine.directory)
    with pytest.raises(FileNotFoundError):
        machine.files.free_bytes(f"{machine.directory}/missing")


def test_only_real_files_have_descriptors(machine: Machine) -> None:
    file = machine.files.open(f"{machine.directory}/a", OpenMode.WRITE)
    assert (file.descriptor() is None) == (machine.kind == "simulated")
    assert file.path == f"{machine.directory}/a"


def test_a_private_file_is_written_like_any_other(machine: Machine) -> None:
    path = f"{machine.directory}/secret"
    file = machine.files.open(path, OpenMode.WRITE_PRIVATE)
    file.write([b"secret"], 0)
    file.close()
    assert _content(machine, path) == b"secret"
