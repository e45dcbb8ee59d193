from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.cli.perf_measurements import QUANTILES, Latencies, Throughput, produce_line


@settings(max_examples=100)
@given(st.lists(st.floats(0, 1000), min_size=1, max_size=50))
def test_quantiles_are_right_to_a_step(values: list[float]) -> None:
    latencies = Latencies()
    for value in values:
        latencies.add(value)
    ordered = sorted(values)
    for share in QUANTILES:
        exact = ordered[max(0, -(-int(share * 1000) * len(values) // 1000) - 1)]
        assert exact - 1e-9 <= latencies.quantile_ms(share) <= exact + Latencies.STEP_MS + 1e-9
    assert latencies.max_ms == max(values)
    assert latencies.mean_ms == pytest.approx(sum(values) / len(values))


def test_nothing_measured_is_zero() -> None:
    assert (Latencies().mean_ms, Latencies().quantile_ms(0.99)) == (0.0, 0.0)
    assert Throughput(record_count=0, size_bytes=0, elapsed_s=0.0).records_per_s == 0.0


def test_the_line_has_the_form_of_kafkas_tool() -> None:
    latencies = Latencies()
    for value in (1.0, 2.0, 3.0, 10.0):
        latencies.add(value)
    line = produce_line(Throughput(record_count=4, size_bytes=2 << 20, elapsed_s=2.0), latencies)
    assert line == (
        "4 records sent, 2.0 records/sec (1.00 MB/sec), 4.00 ms avg latency, 10.00 ms max latency, "
        "2.1 ms 50th, 10.0 ms 95th, 10.0 ms 99th, 10.0 ms 99.9th."
    )
