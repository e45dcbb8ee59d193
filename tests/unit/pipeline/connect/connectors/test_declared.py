"""The names of connectors."""

from __future__ import annotations

import pytest

from millbeck.pipeline.connect.connectors.declared import CONNECTORS, FILE_SINK, connector_of
from millbeck.pipeline.connect.errors import ConfigError


def test_all_names_of_a_connector_mean_the_same() -> None:
    for name in ("org.apache.kafka.connect.file.FileStreamSinkConnector", "FileStreamSinkConnector", "FileStreamSink"):
        assert connector_of(name) is FILE_SINK


def test_an_unknown_connector_is_guessed_and_all_are_listed() -> None:
    with pytest.raises(ConfigError) as caught:
        connector_of("FileStreemSink")
    assert "did you mean FileStreamSink?" in str(caught.value)
    assert all(known.name in str(caught.value) for known in CONNECTORS)
