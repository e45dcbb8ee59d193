"""Bytes become frames however they arrive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.client.frames import FrameReader
from millbeck.wire.errors import DecodeError


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(1, 30), max_size=60))
def test_every_way_of_cutting_gives_the_same_frames(bodies: list[bytes], cuts: list[int]) -> None:
    reader = FrameReader(100)
    data = framed(*bodies)
    received: list[bytes] = []
    for size in [*cuts, len(data)]:
        piece, data = data[:size], data[size:]
        if piece:
            received += reader.receive(piece)
    received += reader.receive(data) if data else []
    assert received == bodies


@pytest.mark.parametrize("length", [b"\x80\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\x65"])
def test_an_impossible_length_is_refused_before_anything_is_kept(length: bytes) -> None:
    with pytest.raises(DecodeError, match="limit of 100"):
        FrameReader(100).receive(length)


def test_a_length_that_arrives_in_pieces_is_checked_too() -> None:
    reader = FrameReader(100)
    assert reader.receive(b"\x7f\xff") == []
    with pytest.raises(DecodeError):
        reader.receive(b"\xff\xff")


def test_pieces_of_a_large_frame_are_joined_once() -> None:
    reader = FrameReader(1 << 20)
    body = bytes(range(256)) * 400
    data = framed(body)
    assert reader.receive(data[:1000]) == []
    for start in range(1000, len(data), 1000):
        frames = reader.receive(data[start : start + 1000])
        assert frames == ([body] if start + 1000 >= len(data) else [])
