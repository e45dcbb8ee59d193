"""Frames of COPY BOTH."""

from __future__ import annotations

import struct

import pytest

from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.postgres.lsn import lsn_of, lsn_text
from millbeck.pipeline.connect.postgres.replication_frames import (
    Keepalive,
    ProtocolError,
    WalMessage,
    frame_of,
    status_update,
)


def test_data_and_keepalives_are_told_apart() -> None:
    assert frame_of(b"w" + struct.pack(">QQq", 1, 2, 3) + b"Bx") == WalMessage(1, 2, b"Bx")
    assert frame_of(b"k" + struct.pack(">QqB", 9, 3, 1)) == Keepalive(9, True)


@pytest.mark.parametrize("data", [b"", b"w", b"k" + bytes(10), b"x" + bytes(30), b"w" + bytes(23)])
def test_other_frames_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        frame_of(data)


def test_a_status_update_as_recorded_from_pg_recvlogical() -> None:
    # One second past 2000-01-01, no reply wanted.
    made = status_update(written=0x1_0000_0002, flushed=5, now_us=946_684_801_000_000)
    assert made == bytes.fromhex("72 0000000100000002 0000000000000005 0000000000000005 00000000000f4240 00")


def test_positions_are_written_as_postgresql_does() -> None:
    assert lsn_text(0x16_B374_D848) == "16/B374D848"
    assert lsn_of("16/B374D848") == 0x16_B374_D848
    assert lsn_text(lsn_of("0/A")) == "0/A"
    for wrong in ("", "16", "1/2/3", "G/1", "123456789/0"):
        with pytest.raises(InvalidValue):
            lsn_of(wrong)
