"""Key hashes, against the values other Kafka clients publish and against kafka-python's function."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"abc": 479470107,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
}


@pytest.mark.parametrize(("key", "expected"), VECTORS.items())
def test_known_values(kernels: SimpleNamespace, key: bytes, expected: int) -> None:
    assert kernels.murmur2.murmur2(key) == expected


@given(st.binary(max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_agrees_with_another_client(kernels: SimpleNamespace, key: bytes) -> None:
    assert kernels.murmur2.murmur2(key) & 0xFFFFFFFF == kafka_python_murmur2(key) & 0xFFFFFFFF
