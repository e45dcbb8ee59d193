from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.kernel.ids import TopicPartition
from millbeck.simulation.environment.disk import SimDisk
from millbeck.storage.checkpoints import (
    HIGH_WATERMARKS,
    CheckpointError,
    decode_lines,
    decode_offsets,
    encode_offsets,
    read_offsets,
    write_offsets,
)

OFFSETS = {TopicPartition("my-topic", 3): 42, TopicPartition("other", 0): 0}


def test_the_format_is_version_count_and_a_line_each() -> None:
    assert encode_offsets(OFFSETS) == b"0\n2\nmy-topic 3 42\nother 0 0\n"
    assert decode_offsets(encode_offsets(OFFSETS)) == OFFSETS
    assert encode_offsets({}) == b"0\n0\n"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0",
        b"1\n0\n",
        b"0\n2\na 0 1\n",
        b"0\n1\na 0\n",
        b"0\n1\na x 1\n",
        b"0\n1\na 0 -1\n",
        b"0\n2\na 0 1\na 0 2\n",
        b"\xff",
    ],
)
def test_malformed_files_are_refused(content: bytes) -> None:
    with pytest.raises(CheckpointError):
        decode_offsets(content)


def test_an_entry_must_have_as_many_words_as_asked_for() -> None:
    assert decode_lines(b"0\n1\n5 100\n", 2) == [["5", "100"]]
    with pytest.raises(CheckpointError):
        decode_lines(b"0\n1\n5 100\n", 3)


def test_files_are_written_and_read_back() -> None:
    files = SimDisk(random.Random(1)).mount()
    files.make_directory("/data")
    assert read_offsets(files, "/data", HIGH_WATERMARKS) == {}
    write_offsets(files, "/data", HIGH_WATERMARKS, OFFSETS)
    assert read_offsets(files, "/data", "replication-offset-checkpoint") == OFFSETS


@given(st.binary(max_size=80))
def test_any_bytes_are_a_checkpoint_or_refused(content: bytes) -> None:
    try:
        offsets = decode_offsets(content)
    except CheckpointError:
        return
    assert decode_offsets(encode_offsets(offsets)) == offsets
