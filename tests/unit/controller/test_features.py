from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck.controller import Controller, NodeRegistration, OptionRules, QuorumFeatures
from millbeck.controller.features import update_features
from millbeck.metadata.features import SUPPORTED_FEATURES, FeatureRange
from millbeck.metadata.image import Endpoint, MetadataImage
from millbeck.metadata.records import (
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    TopicRecord,
)
from millbeck.wire.messages.nodes import FeatureUpdateKey, UpdateFeaturesRequest

Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]
ELIGIBLE = "eligible.leader.replicas.version"


def _at(image: MetadataImage, **levels: int) -> MetadataImage:
    named = {name.replace("_", "."): level for name, level in levels.items()}
    return replace(image, features=replace(image.features, levels=named))


REFUSED = {
    "level of a feature that is not implemented": (
        30,
        FeatureUpdateKey("streams.version", 2),
        "only supports versions 0-1",
    ),
    "level of the future": (30, FeatureUpdateKey("metadata.version", 31), "only supports versions 7-30"),
    "level of the past": (30, FeatureUpdateKey("metadata.version", 6, upgrade_type=3), "only supports versions 7-30"),
    "unknown feature": (30, FeatureUpdateKey("no.such", 1), "not known"),
    "negative": (30, FeatureUpdateKey("metadata.version", -1), "less than 0"),
    "unknown kind": (30, FeatureUpdateKey("metadata.version", 30, upgrade_type=9), "upgrade type"),
    "downgrade called upgrade": (29, FeatureUpdateKey("metadata.version", 25), "Can't downgrade the version"),
    "upgrade called downgrade": (25, FeatureUpdateKey("metadata.version", 30, upgrade_type=2), "newer version"),
    "downgrade that loses": (30, FeatureUpdateKey("metadata.version", 29, upgrade_type=2), "might delete metadata"),
    "unsafe downgrade": (30, FeatureUpdateKey("metadata.version", 29, upgrade_type=3), "Unsafe metadata downgrade"),
    "dependency": (22, FeatureUpdateKey(ELIGIBLE, 1), "needs metadata.version 4.0-IV1"),
    "voters in the log of an old release": (20, FeatureUpdateKey("kraft.version", 1), "needs metadata.version 3.9-IV0"),
}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(("level", "update", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_says_why(
    controller: Controller,
    one_broker: MetadataImage,
    level: int,
    update: FeatureUpdateKey,
    words: str,
    validate_only: bool,
    version: int,
) -> None:
    image = _at(one_broker, metadata_version=level)
    request = UpdateFeaturesRequest(feature_updates=[update], validate_only=validate_only)
    result = controller.update_features(image, request, version=version)
    assert (result.response.error_code, result.response.results, result.records) == (95, [], [])
    assert words in (result.response.error_message or "")


ALLOWED = {
    "no change": (30, FeatureUpdateKey("metadata.version", 30), []),
    "upgrade": (29, FeatureUpdateKey("metadata.version", 30), [("metadata.version", 30)]),
    "downgrade that loses nothing": (
        29,
        FeatureUpdateKey("metadata.version", 23, upgrade_type=2),
        [("metadata.version", 23)],
    ),
    "removal of what is not there": (30, FeatureUpdateKey("group.version", 0), []),
}


@pytest.mark.parametrize(("level", "update", "written"), ALLOWED.values(), ids=ALLOWED.keys())
def test_levels_go_up_and_where_nothing_is_lost_down(
    controller: Controller,
    one_broker: MetadataImage,
    level: int,
    update: FeatureUpdateKey,
    written: list[tuple[str, int]],
) -> None:
    image = _at(one_broker, metadata_version=level)
    request = UpdateFeaturesRequest(feature_updates=[update])
    result = controller.update_features(image, request, version=1)
    assert [(answer.feature, answer.error_code) for answer in result.response.results] == [(update.feature, 0)]
    assert result.records == [FeatureLevelRecord(name=name, feature_level=to) for name, to in written]
    assert controller.update_features(image, request, version=2).response.results == []
    request.validate_only = True
    assert controller.update_features(image, request, version=2).records == []


def test_all_are_updated_or_none(controller: Controller, one_broker: MetadataImage) -> None:
    image = _at(one_broker, metadata_version=25)
    updates = [FeatureUpdateKey("metadata.version", 30), FeatureUpdateKey("streams.version", 2)]
    result = controller.update_features(image, UpdateFeaturesRequest(feature_updates=updates), version=1)
    assert (result.response.error_code, result.response.results, result.records) == (95, [], [])


def test_a_dependency_may_be_met_by_the_same_request(controller: Controller, one_broker: MetadataImage) -> None:
    image = _at(one_broker, metadata_version=22)
    updates = [FeatureUpdateKey(ELIGIBLE, 1), FeatureUpdateKey("metadata.version", 23)]
    assert controller.update_features(image, UpdateFeaturesRequest(feature_updates=updates), version=2).records


def test_version_0_asks_for_a_downgrade_its_own_way(controller: Controller, one_broker: MetadataImage) -> None:
    image = _at(one_broker, metadata_version=29)
    update = FeatureUpdateKey("metadata.version", 25, allow_downgrade=True)
    request = UpdateFeaturesRequest(feature_updates=[update])
    assert controller.update_features(image, request, version=0).response.error_code == 0
    update.allow_downgrade = False
    assert controller.update_features(image, request, version=0).response.error_code == 95


def test_every_node_must_know_the_new_level(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    image = _at(one_broker, metadata_version=29)
    request = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("metadata.version", 30)])

    def message(image: MetadataImage, quorum: QuorumFeatures) -> str:
        result = controller.update_features(image, request, version=2, quorum=quorum)
        return result.response.error_message or ""

    assert message(image, QuorumFeatures(voters=(1,), node_id=1)) == ""
    assert "controller 2 has not registered" in message(image, QuorumFeatures(voters=(1, 2), node_id=1))
    older = {**SUPPORTED_FEATURES, "metadata.version": FeatureRange(7, 29)}
    for features, words in ((dict(SUPPORTED_FEATURES), ""), (older, "Controller 2 only supports versions 7-29")):
        other = NodeRegistration(
            node_id=2,
            incarnation_id=b"2" * 16,
            endpoints=(Endpoint(listener="C", host="h", port=1),),
            features=features,
        )
        known = replayed(image, controller.register_controller(image, other).records)
        assert words in message(known, QuorumFeatures(voters=(1, 2), node_id=1))
        assert bool(words) == bool(message(known, QuorumFeatures(voters=(1, 2), node_id=1)))
    # What this controller said before it was upgraded does not count.
    assert message(known, QuorumFeatures(voters=(2,), node_id=2)) == ""
    broker = replace(one_broker.cluster.brokers[1], features=older)
    image = replace(image, cluster=replace(image.cluster, brokers={1: broker}))
    assert "Broker 1 only supports versions 7-29" in message(image, QuorumFeatures(node_id=1))


def test_the_quorums_level_is_the_drivers_to_write(
    controller: Controller, one_broker: MetadataImage, make_rules: Callable[[], OptionRules]
) -> None:
    supported = {**SUPPORTED_FEATURES, "kraft.version": FeatureRange(0, 1)}
    broker = replace(one_broker.cluster.brokers[1], features=supported)
    image = replace(one_broker, cluster=replace(one_broker.cluster, brokers={1: broker}))

    def ask(level: int, kind: int, now: int, validate_only: bool = False) -> Any:
        update = FeatureUpdateKey("kraft.version", level, upgrade_type=kind)
        request = UpdateFeaturesRequest(feature_updates=[update], validate_only=validate_only)
        quorum = QuorumFeatures(kraft_version=now)
        return update_features(image, request, make_rules(), version=2, quorum=quorum, supported=supported)

    raised = ask(1, 1, 0)
    assert (raised.kraft_version, raised.records, raised.response.error_code) == (1, [], 0)
    assert ask(1, 1, 0, validate_only=True).kraft_version is None
    assert ask(1, 1, 1).kraft_version is None
    assert "cannot be decreased" in ask(0, 2, 1).response.error_message


def _with_partition(image: MetadataImage, replayed: Replayed, isr: list[int], eligible: list[int]) -> MetadataImage:
    partition = PartitionRecord(
        partition_id=0,
        topic_id=b"t" * 16,
        replicas=[1],
        isr=isr,
        leader=-1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[bytes(16)],
        eligible_leader_replicas=eligible,
    )
    return replayed(image, [TopicRecord(name="t", topic_id=b"t" * 16), partition])


def test_eligible_leaders_need_one_number_for_all(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    def option(broker: str, value: str | None) -> ConfigRecord:
        return ConfigRecord(resource_type=4, resource_name=broker, name="min.insync.replicas", value=value)

    request = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(ELIGIBLE, 1)])
    level = FeatureLevelRecord(name=ELIGIBLE, feature_level=1)
    image = replayed(one_broker, [option("1", "2")])
    assert controller.update_features(image, request, version=2).records == [level, option("", "1"), option("1", None)]
    image = replayed(one_broker, [option("", "2")])
    assert controller.update_features(image, request, version=2).records == [level]


def test_eligible_leaders_are_forgotten_unless_they_are_all_there_is(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    request = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(ELIGIBLE, 0, upgrade_type=2)])
    level = FeatureLevelRecord(name=ELIGIBLE, feature_level=1)
    tracking = replayed(one_broker, [level])
    records: list[MetadataRecord] = [FeatureLevelRecord(name=ELIGIBLE, feature_level=0), ClearElrRecord(topic_name="")]
    in_sync = _with_partition(tracking, replayed, [1], [])
    assert controller.update_features(in_sync, request, version=2).records == records
    eligible = _with_partition(tracking, replayed, [], [1])
    refused = controller.update_features(eligible, request, version=2)
    assert (refused.records, "t-0" in (refused.response.error_message or "")) == ([], True)
