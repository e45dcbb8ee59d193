"""Every declared request and response, in every version, agrees byte for byte with kio in both directions."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.messages.classic_groups import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from millbeck.wire.schema import Field
from tests.model.wire import kio_oracle
from tests.model.wire.instances import Maker, Narrow, seeds, standalone_versions

DATA = (ConsumerProtocolSubscription, ConsumerProtocolAssignment)
MESSAGES = [cls for api in APIS.values() for cls in (api.request, api.response)] + list(DATA)


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_bytes_agree_with_kio_both_ways(cls: type[Any]) -> None:
    versions = [(version, *_counterpart(cls, version)) for version in standalone_versions(cls)]

    @settings(max_examples=16, derandomize=True, database=None, deadline=None)
    @given(seeds())
    def agree(seed: int) -> None:
        for version, counterpart, narrow in versions:
            message = Maker(Random(seed), version, narrow).make(cls)
            theirs = counterpart.to_kio(message)
            encoded = codec.encoder(cls, version)(message)
            assert encoded == kio_oracle.write(theirs), f"version {version}"
            assert codec.decoder(cls, version)(encoded) == (message, len(encoded)), f"version {version}"
            assert kio_oracle.read(type(theirs), encoded) == (theirs, len(encoded)), f"version {version}"

    agree()


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_declarations_agree_with_kio_about_null_tags_and_defaults(cls: type[Any]) -> None:
    for version in standalone_versions(cls):
        counterpart, _ = _counterpart(cls, version)
        for inner in counterpart.all():
            assert inner.differences(version) == [], f"version {version}"


def _counterpart(cls: type[Any], version: int) -> tuple[kio_oracle.Counterpart, Narrow]:
    declared: Any = cls
    counterpart = kio_oracle.counterpart(declared, kio_oracle.entity_of(cls, version), version)
    by_class = {inner.cls: inner for inner in counterpart.all()}

    def narrow(owner: type[Any], field: Field) -> Callable[[Random], Any] | None:
        return by_class[owner].maker(field)

    return counterpart, narrow
