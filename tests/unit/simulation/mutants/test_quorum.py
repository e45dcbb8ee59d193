"""Mistakes of the quorum, looked at where they are made."""

from __future__ import annotations

import random

from millbeck.metadata.image import MetadataImage
from millbeck.metadata.image.configs import ConfigResource, ConfigsImage, ResourceType
from millbeck.metadata.records import ConfigRecord
from millbeck.raft.quorum_state import QuorumState, parse_quorum_state
from millbeck.server.metadata import metadata_files
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.mutants import quorum
from millbeck.simulation.mutants.patching import patched


def test_a_vote_that_is_not_durable_is_gone_after_a_power_cut() -> None:
    kept = []
    for mutate in (False, True):
        disk = SimDisk(random.Random(1))
        files = disk.mount()
        with patched() as patch:
            if mutate:
                quorum.vote_not_durable(patch)
            metadata_files.write_quorum_state(files, "", QuorumState(leader_epoch=3, voted_id=2))
        assert parse_quorum_state(bytes(disk.find("/quorum-state").content).decode()).voted_id == 2  # type: ignore[union-attr]
        disk.power_loss(0.0)
        kept.append("quorum-state" in disk.root.entries)
    assert kept == [True, False]


def test_a_snapshot_misses_the_settings() -> None:
    resource = ConfigResource(ResourceType.TOPIC, "t")
    image = MetadataImage(configs=ConfigsImage(by_resource={resource: {"retention.ms": "1"}}))
    assert any(isinstance(record, ConfigRecord) for record in image.records())
    with patched() as patch:
        quorum.snapshot_without_settings(patch)
        assert not any(isinstance(record, ConfigRecord) for record in image.records())
