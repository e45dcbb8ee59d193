"""Records are values."""

from __future__ import annotations

from types import SimpleNamespace


def test_equal_when_every_field_is(kernels: SimpleNamespace) -> None:
    record = kernels.record.Record
    one = record(1, 2, b"k", b"v", (("h", None),))
    assert one == record(1, 2, b"k", b"v", (("h", None),))
    assert hash(one) == hash(record(1, 2, b"k", b"v", (("h", None),)))
    others = [
        record(0, 2, b"k", b"v", (("h", None),)),
        record(1, 0, b"k", b"v", (("h", None),)),
        record(1, 2, None, b"v", (("h", None),)),
        record(1, 2, b"k", b"", (("h", None),)),
        record(1, 2, b"k", b"v", ()),
    ]
    assert all(one != other for other in others)
    assert one != (1, 2, b"k", b"v", (("h", None),))


def test_headers_are_optional_and_the_text_shows_all(kernels: SimpleNamespace) -> None:
    record = kernels.record.Record(7, 8, None, b"v")
    assert record.headers == ()
    assert repr(record) == "Record(7, 8, None, b'v', ())"
