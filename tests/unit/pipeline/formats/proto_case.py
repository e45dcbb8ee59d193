"""One message with everything in it, and random ones of it."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

PROTO: Final = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
message Line { string name = 1; sint32 count = 2; }
message Order {
  enum State { NEW = 0; PAID = 5; }
  message Note { bytes text = 1; }
  int32 a = 1; int64 b = 2; uint32 c = 3; uint64 d = 4; sfixed64 e = 5; fixed32 f = 6;
  double g = 7; float h = 8; bool i = 9; string j = 10; bytes k = 11; State state = 12;
  optional int32 maybe = 13;
  Line line = 14; repeated Line lines = 15; repeated int32 numbers = 16; repeated State states = 17;
  map<string, int64> counts = 18; map<uint64, Line> by_number = 19;
  oneof payment { string card = 20; Note note = 21; }
  google.protobuf.Timestamp at = 22; google.protobuf.Duration lasts = 23; google.protobuf.Int64Value wrapped = 24;
}
"""

_INT32 = st.integers(-(2**31), 2**31 - 1)
_INT64 = st.integers(-(2**63), 2**63 - 1)
_UINT64 = st.integers(0, 2**64 - 1)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
_LINES = st.fixed_dictionaries({}, optional={"name": _TEXT, "count": _INT32})

VALUES: Final = st.fixed_dictionaries(
    {},
    optional={
        "a": _INT32,
        "b": _INT64,
        "c": st.integers(0, 2**32 - 1),
        "d": _UINT64,
        "e": _INT64,
        "f": st.integers(0, 2**32 - 1),
        "g": st.floats(allow_nan=False),
        "h": st.floats(width=32, allow_nan=False),
        "i": st.booleans(),
        "j": _TEXT,
        "k": st.binary(max_size=4),
        "state": st.sampled_from([0, 5, 77]),
        "maybe": _INT32,
        "line": _LINES,
        "lines": st.lists(_LINES, max_size=2),
        "numbers": st.lists(_INT32, max_size=3),
        "states": st.lists(st.sampled_from([0, 5]), max_size=3),
        "counts": st.dictionaries(_TEXT, _INT64, max_size=2),
        "by_number": st.dictionaries(_UINT64, _LINES, max_size=2),
        "wrapped": st.fixed_dictionaries({"value": _INT64}),
        "at": st.fixed_dictionaries(
            {"seconds": st.integers(-(10**9), 10**10), "nanos": st.integers(0, 999_999).map(lambda each: each * 1000)}
        ),
        "lasts": st.integers(-(10**12), 10**12).map(lambda micros: _parts(micros)),
    },
) | st.one_of(
    st.fixed_dictionaries({"card": _TEXT}),
    st.fixed_dictionaries({"note": st.fixed_dictionaries({"text": st.binary(max_size=3)})}),
)


def _parts(microseconds: int) -> dict[str, Any]:
    sign = -1 if microseconds < 0 else 1
    seconds, rest = divmod(abs(microseconds), 1_000_000)
    return {"seconds": sign * seconds, "nanos": sign * rest * 1000}
