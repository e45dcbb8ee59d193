"""Who goes straight to a thread, and that only so many are remembered."""

from __future__ import annotations

from millbeck.server.fetch.cold_readers import DISK_SHARE_MIN, READERS_MAX, STRETCH_BYTES, ColdReaders


def test_a_read_is_expected_where_a_cold_one_ended() -> None:
    readers = ColdReaders()
    assert not readers
    readers.moved("a.log", 0, 10, 10, is_at_end=False)
    assert readers.expects("a.log", 10)
    assert not readers.expects("a.log", 0)
    assert not readers.expects("b.log", 10)
    readers.moved("a.log", 10, 20, 10, is_at_end=False)
    assert not readers.expects("a.log", 10)
    assert readers.expects("a.log", 20)


def test_the_end_of_the_file_ends_it() -> None:
    readers = ColdReaders()
    readers.moved("a.log", 0, 10, 10, is_at_end=False)
    readers.moved("a.log", 10, 20, 10, is_at_end=True)
    assert not readers


def test_the_oldest_is_forgotten_when_there_are_too_many() -> None:
    readers = ColdReaders()
    for position in range(READERS_MAX + 1):
        readers.moved("a.log", -1, position, 10, is_at_end=False)
    assert not readers.expects("a.log", 0)
    assert readers.expects("a.log", 1)
    assert readers.expects("a.log", READERS_MAX)


PIECES = 4
PIECE = STRETCH_BYTES // PIECES


def _read(readers: ColdReaders, start: int, disk_bytes: int) -> int:
    readers.moved("a.log", start, start + PIECE, disk_bytes, is_at_end=False)
    return start + PIECE


def test_who_finds_nearly_everything_in_memory_is_an_ordinary_reader_again() -> None:
    readers = ColdReaders()
    position = 0
    for _ in range(PIECES):
        assert not position or readers.expects("a.log", position)
        position = _read(readers, position, 4096)
    assert not readers


def test_what_the_kernel_reads_ahead_counts_for_the_stretch_it_is_read_in() -> None:
    """One read in four goes to the disk and brings the others along."""
    readers = ColdReaders()
    position = 0
    for number in range(3 * PIECES):
        position = _read(readers, position, STRETCH_BYTES if number % PIECES == 0 else 0)
        assert readers.expects("a.log", position)


def test_who_was_found_cold_stays_so_whatever_comes_from_memory_later() -> None:
    readers = ColdReaders()
    position = 0
    for _ in range(PIECES):
        position = _read(readers, position, PIECE // DISK_SHARE_MIN + 1)
    for _ in range(5 * PIECES):
        position = _read(readers, position, 0)
        assert readers.expects("a.log", position)
    readers.moved("a.log", position, position + PIECE, 0, is_at_end=True)
    assert not readers
