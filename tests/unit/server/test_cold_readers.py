"""Who goes straight to a thread, and that only so many are remembered."""

from __future__ import annotations

from millbeck.server.cold_readers import READERS_MAX, ColdReaders


def test_a_read_is_expected_where_a_cold_one_ended() -> None:
    readers = ColdReaders()
    assert not readers
    readers.moved("a.log", 0, 10, is_at_end=False)
    assert readers.expects("a.log", 10)
    assert not readers.expects("a.log", 0)
    assert not readers.expects("b.log", 10)
    readers.moved("a.log", 10, 20, is_at_end=False)
    assert not readers.expects("a.log", 10)
    assert readers.expects("a.log", 20)


def test_the_end_of_the_file_ends_it() -> None:
    readers = ColdReaders()
    readers.moved("a.log", 0, 10, is_at_end=False)
    readers.moved("a.log", 10, 20, is_at_end=True)
    assert not readers


def test_the_oldest_is_forgotten_when_there_are_too_many() -> None:
    readers = ColdReaders()
    for position in range(READERS_MAX + 1):
        readers.moved("a.log", -1, position, is_at_end=False)
    assert not readers.expects("a.log", 0)
    assert readers.expects("a.log", 1)
    assert readers.expects("a.log", READERS_MAX)
