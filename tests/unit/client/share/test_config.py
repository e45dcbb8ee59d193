from __future__ import annotations

import pytest

from millbeck.client.share.config import ShareConsumerConfig
from millbeck.kernel.errors import InvalidConfig


def test_the_defaults_are_those_of_kafka() -> None:
    config = ShareConsumerConfig.parse({"bootstrap.servers": "h:1", "group.id": "g"})
    assert (config.max_poll_records, config.is_explicit, config.acquire_mode) == (500, False, "batch_optimized")
    explicit = ShareConsumerConfig.parse({"bootstrap.servers": "h:1", "share.acknowledgement.mode": "explicit"})
    assert explicit.is_explicit


def test_modes_that_nobody_knows_are_refused() -> None:
    with pytest.raises(InvalidConfig):
        ShareConsumerConfig.parse({"bootstrap.servers": "h:1", "share.acknowledgement.mode": "maybe"})
