from __future__ import annotations

import json
from collections.abc import Callable

import click
import pytest
from click.testing import Result

from millbeck.cli.commands import feature
from millbeck.cli.commands.feature import feature_rows, levels_of, mapped_levels, release_levels
from millbeck.client.admin.results import FeatureDescription


def test_rows_name_releases_and_levels() -> None:
    found = FeatureDescription(
        supported={"metadata.version": (7, 30), "kraft.version": (0, 1)},
        finalized={"metadata.version": (30, 30)},
        finalized_epoch=5,
    )
    rows = feature_rows(found)
    assert [(row["feature"], row["supported_max"], row["finalized"]) for row in rows] == [
        ("kraft.version", "1", "0"),
        ("metadata.version", "4.3-IV0", "4.3-IV0"),
    ]


def context() -> click.Context:
    return click.Context(feature.command)


def test_levels_by_release_and_by_name() -> None:
    assert levels_of(context(), "4.3-IV0", ["group.version=1"]) == {"metadata.version": 30, "group.version": 1}


def test_a_release_has_levels_for_what_began_with_it() -> None:
    everything = {
        "group.version": 1,
        "transaction.version": 2,
        "eligible.leader.replicas.version": 1,
        "share.version": 1,
        "streams.version": 1,
    }
    assert release_levels(30) == everything
    assert release_levels(24) == {"group.version": 1, "transaction.version": 2}
    assert release_levels(20) == {}


WRONG = {
    "nothing": (None, ()),
    "no level": (None, ("a",)),
    "a word": (None, ("a=b",)),
    "twice": ("4.3-IV0", ("metadata.version=30",)),
    "no release": ("1.0", ()),
}


@pytest.mark.parametrize(("release", "features"), WRONG.values(), ids=WRONG.keys())
def test_what_makes_no_sense_is_refused(release: str | None, features: tuple[str, ...]) -> None:
    with pytest.raises(click.UsageError):
        levels_of(context(), release, features)


def test_something_must_be_asked_for(fails: Callable[..., str]) -> None:
    assert "no feature given" in fails("feature", "upgrade")


def test_a_release_maps_to_levels_of_every_feature(run: Callable[..., Result]) -> None:
    shown = run("feature", "version-mapping").stdout.splitlines()
    assert shown == [
        "metadata.version=30 (4.3-IV0)",
        "eligible.leader.replicas.version=1",
        "group.version=1",
        "kraft.version=1",
        "share.version=1",
        "streams.version=1",
        "transaction.version=2",
    ]
    in_json = json.loads(run("feature", "version-mapping", "-o", "json").stdout)
    assert shown == [
        f"metadata.version={in_json['levels']['metadata.version']} ({in_json['release']})",
        *(f"{name}={level}" for name, level in in_json["levels"].items() if name != "metadata.version"),
    ]
    older = run("feature", "--bootstrap-server", "h:1", "version-mapping", "--release-version", "3.8-IV0").stdout
    assert older.splitlines()[0] == "metadata.version=20 (3.8-IV0)"
    assert set(older.splitlines()[1:]) == {f"{name}=0" for name in mapped_levels(20)}


def test_dependencies_of_levels(run: Callable[..., Result], fails: Callable[..., str]) -> None:
    asked = ("--feature", "eligible.leader.replicas.version=1", "--feature", "metadata.version=30")
    assert run("feature", "feature-dependencies", *asked).stdout.splitlines() == [
        "eligible.leader.replicas.version=1 requires:",
        "    metadata.version=23 (4.0-IV1)",
        "metadata.version=30 (4.3-IV0) has no dependencies.",
    ]
    assert "metadata.version=21 (3.9-IV0)" in run("feature", "feature-dependencies", "-f", "kraft.version=1").stdout
    assert "group.version=1 has no" in run("feature", "feature-dependencies", "-f", "group.version=1").stdout
    assert "Unknown feature: no" in fails("feature", "feature-dependencies", "-f", "no=1")
    assert "level 9" in fails("feature", "feature-dependencies", "-f", "group.version=9")
    assert "unknown release" in fails("feature", "version-mapping", "-r", "1.0")
