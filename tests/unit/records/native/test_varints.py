"""Numbers as records write them, against the arithmetic definition of a zigzag varint."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millbeck.records.varint import read_varlong

EDGES = [0, 1, -1, 63, 64, -64, -65, 8191, 8192, -8192, -8193, 2**20, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
NUMBERS = st.one_of(st.sampled_from(EDGES), st.integers(-(2**63), 2**63 - 1), st.integers(-20000, 20000))


def by_definition(value: int) -> bytes:
    raw = 2 * value if value >= 0 else -2 * value - 1
    encoded = bytearray()
    while True:
        encoded.append(raw & 0x7F | (0x80 if raw > 0x7F else 0))
        raw >>= 7
        if not raw:
            return bytes(encoded)


@pytest.mark.parametrize("value", EDGES)
def test_edges_are_written_as_defined(kernels: SimpleNamespace, value: int) -> None:
    assert kernels.varints.encode(value) == by_definition(value)


@given(NUMBERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_every_number_has_its_defined_form_and_size(kernels: SimpleNamespace, value: int) -> None:
    encoded = kernels.varints.encode(value)
    assert encoded == by_definition(value)
    assert kernels.varints.size_of(value) == len(encoded)
    assert read_varlong(encoded, 0) == (value, len(encoded))


@given(NUMBERS, st.integers(0, 3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
def test_numbers_are_read_within_their_bounds_or_not_at_all(kernels: SimpleNamespace, value: int, before: int) -> None:
    varints = kernels.varints
    encoded = bytes(before) + by_definition(value)
    assert varints.read_varlong(encoded, before, len(encoded)) == (value, len(encoded))
    assert varints.read_varlong(encoded, before, len(encoded) - 1)[1] == varints.NO_NUMBER
    fits = -(2**31) <= value < 2**31
    end = len(encoded) if fits else varints.NO_NUMBER
    assert varints.read_varint(encoded, before, len(encoded)) == (value if fits else 0, end)
