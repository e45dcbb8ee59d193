"""An idempotent producer whose connections break after the append and before the answer writes each record once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.raw import StoredBatch
from tests.interop.clients import DriverSession
from tests.interop.proxy import CuttingProxy

RECORDS = 200
CUTS = 5


@pytest.mark.timeout(200)
def test_retries_after_lost_answers_store_each_record_once(
    new_driver: Callable[[str], DriverSession],
    new_topic: Callable[..., str],
    stored: Callable[..., list[StoredBatch]],
    driver: DriverSession,
    proxy: CuttingProxy,
) -> None:
    topic = new_topic()
    sent = [{"value": f"record {index}"} for index in range(RECORDS)]
    through_proxy = new_driver(proxy.bootstrap)
    proxy.arm(every=4, cuts_max=CUTS)
    answer = through_proxy.ask("produce", topic=topic, idempotent=True, pause_ms=8, records=sent)
    assert proxy.cuts == CUTS, "the producer sent too few requests for the proxy to cut"

    batches = stored(topic)
    assert sum(batch.record_count for batch in batches) == RECORDS
    assert all(batch.producer_id >= 0 and batch.base_sequence >= 0 for batch in batches)
    _check_sequences(batches)
    records = driver.ask("consume", topic=topic, count=RECORDS)["records"]
    assert [record["value"] for record in records] == [record["value"] for record in sent]
    if "acknowledged" not in driver.client.lacks:
        # A retry of a batch that was stored is answered with the offset it has, or with -1 where the client
        # was told only that it is a duplicate.
        for index, (_, offset) in enumerate(answer["acknowledged"]):
            assert offset in (index, -1)


def _check_sequences(batches: list[StoredBatch]) -> None:
    """Within one producer id and epoch the sequence numbers run on without a gap."""
    expected: dict[tuple[int, int], int] = {}
    for batch in batches:
        producer = (batch.producer_id, batch.producer_epoch)
        assert batch.base_sequence == expected.get(producer, 0)
        expected[producer] = batch.base_sequence + batch.record_count
