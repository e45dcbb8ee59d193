from __future__ import annotations

from collections.abc import Callable

import click
import pytest

from millbeck.cli import feature
from millbeck.cli.feature import feature_rows, levels_of, release_levels
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
    assert "which feature" in fails("feature", "upgrade")
