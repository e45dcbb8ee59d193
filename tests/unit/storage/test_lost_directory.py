"""A directory that could not be opened has nothing and takes nothing."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import KafkaStorageError
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.options import ConfigLayers
from millbeck.storage.config import LogConfig
from millbeck.storage.lost_directory import OfflineLogDirectory


def test_it_is_offline_and_empty() -> None:
    lost = OfflineLogDirectory("/b", "Input/output error")
    assert (lost.offline_reason, lost.meta, lost.had_clean_shutdown) == ("Input/output error", None, False)
    assert (lost.partitions(), lost.interrupted_moves(), lost.leftovers()) == ([], [], [])
    assert lost.read_high_watermarks() == {}
    lost.all_opened()
    with pytest.raises(KafkaStorageError, match="/b is offline: Input/output error"):
        lost.create_log(TopicPartition("t", 0), b"t" * 16, LogConfig.resolve(ConfigLayers()), now_ms=0)
    with pytest.raises(KafkaStorageError, match="offline"):
        lost.checkpoint_job()
    assert lost.close() is False
    lost.abandon()
