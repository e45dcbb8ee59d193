"""Every declared request and response, in every version, agrees byte for byte with kio in both directions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.model.wire import kio_oracle
from tests.model.wire.instances import instances, standalone_versions

from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from millbeck.wire.schema import Field

DATA = (ConsumerProtocolSubscription, ConsumerProtocolAssignment)
MESSAGES = [cls for api in APIS.values() for cls in (api.request, api.response)] + list(DATA)


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_bytes_agree_with_kio_both_ways(cls: type[Any]) -> None:
    for version in standalone_versions(cls):
        _check_agreement(cls, version)


def _check_agreement(cls: type[Any], version: int) -> None:
    counterpart = kio_oracle.counterpart(cls, kio_oracle.entity_of(cls, version), version)
    by_class = {inner.cls: inner for inner in counterpart.all()}

    def narrow(owner: type[Any], field: Field) -> st.SearchStrategy[Any] | None:
        return by_class[owner].values(field)

    @settings(max_examples=6, derandomize=True, database=None, suppress_health_check=list(HealthCheck), deadline=None)
    @given(instances(cls, version, narrow))
    def agree(message: Any) -> None:
        theirs = counterpart.to_kio(message)
        encoded = codec.encoder(cls, version)(message)
        assert encoded == kio_oracle.write(theirs)
        assert codec.decoder(cls, version)(encoded) == (message, len(encoded))
        assert kio_oracle.read(type(theirs), encoded) == (theirs, len(encoded))

    agree()
