"""The look at schema ids, against one that reads the records as objects."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millbeck.records.record import Record
from tests.unit.records.native.test_read import MALFORMED

KNOWN = frozenset({1, 7, 300, 2**31 - 1})
DATA = st.one_of(
    st.none(),
    st.binary(max_size=6),
    st.builds(
        lambda number, rest: b"\0" + number.to_bytes(4, "big") + rest,
        st.sampled_from([1, 7, 300, 2**31 - 1, 8, 2**32 - 1]),
        st.sampled_from([b"", b"v", b"v" * 200]),
    ),
)


def is_accepted(data: bytes | None, known: frozenset[int] | None) -> bool:
    if known is None or data is None:
        return True
    return len(data) >= 5 and data[0] == 0 and int.from_bytes(data[1:5], "big") in known


@given(
    st.lists(st.tuples(DATA, DATA, st.integers(0, 10**7)), max_size=8),
    st.sampled_from([None, KNOWN]),
    st.sampled_from([None, KNOWN]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_the_first_record_that_is_not_accepted_is_found(
    kernels: SimpleNamespace,
    given_records: list[tuple[bytes | None, bytes | None, int]],
    keys: frozenset[int] | None,
    values: frozenset[int] | None,
) -> None:
    made = [Record(-1, 1000 + later, key, value, (("h", b"x"),)) for key, value, later in given_records]
    payload, _, _ = kernels.write.encode_records(made, 0, 1000)
    expected = next(
        (
            index
            for index, each in enumerate(made)
            if not (is_accepted(each.key, keys) and is_accepted(each.value, values))
        ),
        -1,
    )
    assert kernels.schema_ids.first_refused(b"12" + payload, 2, len(made), keys, values) == expected


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_records_end_the_look_within_their_bytes(kernels: SimpleNamespace, name: str) -> None:
    payload, count = MALFORMED[name]
    found = kernels.schema_ids.first_refused(payload, 0, count, KNOWN, KNOWN)
    assert -1 <= found < max(1, count)
