"""Plans of sinks, and connectors of other packages."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator

import pytest

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.config.validation import validated
from millbeck.pipeline.connect.connectors import declared
from millbeck.pipeline.connect.connectors.connector_class import ConnectorClass, ConnectorKind
from millbeck.pipeline.connect.connectors.declared import CONNECTORS, connector_of, implementation_of
from millbeck.pipeline.connect.connectors.interface import (
    RECORDS_PER_SHARE_MAX,
    Backlog,
    Connector,
    OffsetRange,
    SinkConnector,
    SourceConnector,
    dealt_out,
)
from millbeck.pipeline.connect.errors import ConfigError
from tests.unit.pipeline.connect.connectors import sample_plugin
from tests.unit.pipeline.connect.connectors.sample_plugin import CountingSource

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_partitions_are_dealt_out_to_the_task_with_the_least() -> None:
    plan = dealt_out({A0: Backlog(5, 100), A1: Backlog(0, 60), B0: Backlog(7, 47)}, 2)
    assert [share.ranges for share in plan.shares] == [
        (OffsetRange(A0, 5, 100),),
        (OffsetRange(A1, 0, 60), OffsetRange(B0, 7, 47)),
    ]
    assert plan.again_s is None


def test_a_long_backlog_is_cut_and_planned_again_at_once() -> None:
    plan = dealt_out({A0: Backlog(3, 3 + RECORDS_PER_SHARE_MAX + 1)}, 4)
    assert [share.ranges for share in plan.shares] == [(OffsetRange(A0, 3, 3 + RECORDS_PER_SHARE_MAX),)]
    assert plan.shares[0].is_long
    assert plan.again_s == 0


def test_nothing_to_write_is_no_share() -> None:
    assert dealt_out({A0: Backlog(3, 3)}, 4).shares == ()
    assert dealt_out({}, 1).shares == ()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Entry points as an installed package has them, one of which cannot be loaded."""
    entries = importlib.metadata.EntryPoints(
        importlib.metadata.EntryPoint(name, f"{sample_plugin.__name__}:{value}", declared.ENTRY_POINTS)
        for name, value in (("CountingSource", "CountingSource"), ("Broken", "NoSuchClass"))
    )
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: entries if group == declared.ENTRY_POINTS else ()
    )
    declared._installed.cache_clear()
    yield
    declared._installed.cache_clear()


@pytest.mark.usefixtures("installed")
def test_a_class_of_another_package_is_found_by_its_entry_point() -> None:
    found = connector_of("CountingSource")
    assert found.name == "shop.CountingSource"
    assert implementation_of(found) is CountingSource
    assert declared.installed_connectors() == [found]


@pytest.mark.usefixtures("installed")
def test_a_class_that_cannot_be_loaded_is_named() -> None:
    with pytest.raises(ConfigError, match="the entry point Broken cannot be loaded"):
        connector_of("Broken")


@pytest.mark.usefixtures("installed")
def test_settings_that_contradict_each_other_are_an_error_at_their_key() -> None:
    settings: dict[str, str | None] = {"name": "n", "connector.class": "CountingSource", "topic": "t"}
    found = validated(settings | {"end": "5", "step": "6"})
    assert found.entry("step").value.errors == ["is longer than the way to end: make it smaller"]
    assert not validated(settings | {"end": "6", "step": "6"}).errors
    # With another error, or a variable, they cannot be looked at together.
    assert "is longer" not in str(validated(settings | {"end": "x", "step": "6"}).errors)
    assert not validated(settings | {"end": "${env:END}", "step": "6"}).errors


def test_what_is_not_installed_says_how_to_install_it() -> None:
    from dataclasses import replace

    lacking = replace(CONNECTORS[0], implementation="no_such_module_of_ours:Sink", extra="iceberg")
    with pytest.raises(ConfigError, match=r"pip install 'millbeck\[iceberg\]'"):
        implementation_of(lacking)


@pytest.mark.parametrize("known", CONNECTORS, ids=lambda known: known.short_names[0])
def test_every_connector_has_a_class_that_can_be_made(known: ConnectorClass) -> None:
    try:
        found = implementation_of(known)
    except ConfigError as error:
        pytest.skip(f"not installed: {error}")
    assert found.declared == known
    kind = SourceConnector if known.kind is ConnectorKind.SOURCE else SinkConnector
    assert issubclass(found, kind)
    assert found.__init__ is Connector.__init__ or found.__init__.__code__.co_argcount == 3
