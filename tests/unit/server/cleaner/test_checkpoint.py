"""The cleaner's checkpoint: Kafka's format, and what is in it when."""

from __future__ import annotations

import random

import pytest

from millbeck.kernel.environment import OpenMode
from millbeck.kernel.ids import TopicPartition
from millbeck.server.cleaner.checkpoint import CleanerCheckpoint
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.files import SimFiles

A, B = TopicPartition("a", 0), TopicPartition("b.c", 7)


@pytest.fixture
def files() -> SimFiles:
    found = SimDisk(random.Random(1)).mount()
    found.make_directory("/data")
    return found


def content(files: SimFiles) -> bytes:
    file = files.open("/data/cleaner-offset-checkpoint", OpenMode.READ)
    return file.read(1000, 0)


def test_it_is_written_as_kafka_writes_it_and_read_again(files: SimFiles) -> None:
    checkpoint = CleanerCheckpoint(files, "/data")
    assert checkpoint.offset_of(A) is None
    checkpoint.note(B, 12)
    checkpoint.note(A, 5)
    checkpoint.job()()
    assert content(files) == b"0\n2\na 0 5\nb.c 7 12\n"
    again = CleanerCheckpoint(files, "/data")
    assert (again.offset_of(A), again.offset_of(B)) == (5, 12)


def test_a_job_writes_what_was_known_when_it_was_taken(files: SimFiles) -> None:
    checkpoint = CleanerCheckpoint(files, "/data")
    checkpoint.note(A, 5)
    job = checkpoint.job()
    checkpoint.note(A, 6)
    job()
    assert content(files) == b"0\n1\na 0 5\n"
    assert checkpoint.is_changed


def test_it_changes_only_when_something_does(files: SimFiles) -> None:
    checkpoint = CleanerCheckpoint(files, "/data")
    checkpoint.note(A, 5)
    checkpoint.job()
    checkpoint.note(A, 5)
    checkpoint.lower(A, 5)
    checkpoint.lower(B, 0)
    checkpoint.forget(B)
    assert not checkpoint.is_changed
    checkpoint.lower(A, 4)
    assert checkpoint.is_changed
    assert checkpoint.offset_of(A) == 4
    checkpoint.forget(A)
    assert checkpoint.offset_of(A) is None


def test_a_damaged_one_is_as_good_as_none(files: SimFiles, caplog: pytest.LogCaptureFixture) -> None:
    file = files.open("/data/cleaner-offset-checkpoint", OpenMode.WRITE)
    file.write([b"0\n2\na 0 5\n"], 0)
    assert CleanerCheckpoint(files, "/data").offset_of(A) is None
    assert "cleaner-offset-checkpoint" in caplog.text
