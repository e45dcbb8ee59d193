"""What members of the group tell each other, in Confluent's JSON, and whom they choose."""

from __future__ import annotations

import pytest

from millbeck.client.schemas.log_records import UnreadableRecord, decode_json
from millbeck.registry.election import Identity, choose

R1, R2, READER = Identity("r1", 8081), Identity("r2", 8081), Identity("r0", 8081, is_eligible=False)
CHOICES = {
    "the first by address": ({"b": R1, "a": R2}, None, "b"),
    "the one that led": ({"b": R1, "a": R2}, R2, "a"),
    "another when that one is gone": ({"b": R1}, R2, "b"),
    "never one that must not": ({"c": READER, "a": R2}, READER, "a"),
    "nobody": ({"c": READER}, None, None),
}


@pytest.mark.parametrize(("members", "current", "chosen"), CHOICES.values(), ids=CHOICES.keys())
def test_who_leads(members: dict[str, Identity], current: Identity | None, chosen: str | None) -> None:
    assert choose(members, current) == chosen


def test_a_member_joins_with_confluents_json() -> None:
    assert R1.encode() == b'{"version":1,"host":"r1","port":8081,"master_eligibility":true,"scheme":"http"}'
    assert Identity.decode(decode_json(R1.encode())) == R1
    assert Identity("::1", 8081, "https").url == "https://[::1]:8081"


@pytest.mark.parametrize("members", [None, {}, {"host": 1, "port": 1}, {"host": "a", "port": -1}, {"host": "a"}])
def test_what_is_no_identity_is_refused(members: object) -> None:
    with pytest.raises(UnreadableRecord):
        Identity.decode(members)
