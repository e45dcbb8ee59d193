"""Signals, and what the snapshots for them see."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.postgres.assembly import Transaction
from millbeck.pipeline.connect.postgres.incremental import changed_keys, state_of
from millbeck.pipeline.connect.postgres.share import entry_of
from millbeck.pipeline.connect.postgres.signals import STATE, Signal, State, signal_of, state_after
from millbeck.pipeline.connect.postgres.tables import TableId
from millbeck.pipeline.connect.postgres.visibility import SnapshotXids
from tests.unit.pipeline.connect.postgres import messages
from tests.unit.pipeline.connect.postgres.messages import settings_of, table_of

SIGNALS = table_of("signals", id="text!", type="text!", data="text")
CAPTURE = settings_of(table_exclude_list="public.signals").capture
TABLES = [TableId("public", name) for name in ("orders", "items", "signals")]


def after(state: State | None, kind: str, **settings: Any) -> State | None:
    return state_after(state, Signal("s", kind, settings), TABLES, CAPTURE, lsn=9)


def test_rows_of_the_table_are_signals() -> None:
    data = json.dumps({"data-collections": ["public.orders"]}).encode()
    assert signal_of(SIGNALS, messages.insert(1, b"a", b"execute-snapshot", data)) == Signal(
        "a", "execute-snapshot", {"data-collections": ["public.orders"]}
    )
    assert signal_of(SIGNALS, messages.insert(1, b"a", b"log", None)) == Signal("a", "log", {})
    for other in (
        messages.insert(1, b"a", b"log", b"{"),
        messages.insert(1, b"a", b"log", b"[]"),
        messages.insert(1, b"a", None, None),
        messages.delete(1, [b"a", None, None]),
    ):
        assert signal_of(SIGNALS, other) is None


def test_a_snapshot_is_asked_for_widened_and_stopped() -> None:
    state = after(None, "execute-snapshot", **{"data-collections": ['"public"."orders"']})
    assert state == {"tables": [["public.orders", None]], "id": "s@9", "paused": False}
    wider = after(
        state,
        "execute-snapshot",
        **{
            "data-collections": ["public.*"],
            "additional-conditions": [{"data-collection": "public.items", "filter": "id > 5"}],
        },
    )
    assert wider is not None
    assert wider["tables"] == [["public.orders", None], ["public.items", "id > 5"]]
    assert after(wider, "stop-snapshot", **{"data-collections": ["public.orders"]}) == {
        **wider,
        "tables": [["public.items", "id > 5"]],
    }
    assert after(wider, "stop-snapshot") is None


def test_pauses() -> None:
    state = after(None, "execute-snapshot", **{"data-collections": ["public.orders"]})
    paused = after(state, "pause-snapshot")
    assert state_of({STATE: state}) == state
    assert state_of({STATE: paused}) is None
    assert state_of({STATE: after(paused, "resume-snapshot")}) == state
    assert state_of({}) is None


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"data-collections": ["public.nothing"]},
        {"data-collections": ["public.("]},
        {"data-collections": [7]},
        {"data-collections": ["public.orders"], "type": "blocking"},
    ],
)
def test_signals_that_mean_nothing(settings: dict[str, Any]) -> None:
    assert after(None, "execute-snapshot", **settings) is None
    assert after(None, "dance", **settings) is None


def test_what_a_snapshot_sees() -> None:
    seen = SnapshotXids.of("100:110:102,105")
    assert [xid for xid in range(95, 115) if not seen.sees(xid)] == [102, 105, 110, 111, 112, 113, 114]
    # The stream has the low 32 bits of a number.
    later = SnapshotXids.of(f"{(1 << 32) + 2}:{(1 << 32) + 5}:")
    assert later.sees(0xFFFF_FFFF)
    assert later.sees(4)
    assert not later.sees(5)
    for wrong in ("", "1:2", "a:b:c"):
        with pytest.raises(InvalidValue):
            SnapshotXids.of(wrong)


def transaction(*changes: bytes) -> Transaction:
    entries = b"".join(entry_of(1, 1, change) for change in changes)
    return Transaction(
        commit_lsn=1, end_lsn=2, lsn=1, transaction_id=7, time_us=1, message_type="INSERT",
        shapes=frozenset({1}), entries=entry_of(1, 0, messages.begin(1, 7)) + entries,
    )  # fmt: skip


def test_the_keys_that_a_transaction_has_touched() -> None:
    tables = {1: table_of(key=("b", "a"), a="int4!", b="text!", c="text")}
    found = transaction(
        messages.insert(1, b"1", b"x", None),
        messages.update(1, [b"2", b"y", None], [b"3", b"z", None]),
        messages.delete(1, [b"4", b"w", None]),
    )
    assert changed_keys(found, {1}, tables, ("b", "a")) == {(b"x", b"1"), (b"y", b"2"), (b"z", b"3"), (b"w", b"4")}
    assert changed_keys(transaction(messages.truncate(1)), {1}, tables, ("b", "a")) is None
    assert changed_keys(found, {1}, {1: table_of(a="int4")}, ("b", "a")) is None
