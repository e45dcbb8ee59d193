"""Messages to transactions."""

from __future__ import annotations

import pytest

from millbeck.pipeline.connect.postgres import assembly
from millbeck.pipeline.connect.postgres.assembly import HalfRead, Transaction, TransactionAssembler
from millbeck.pipeline.connect.postgres.pgoutput import Relation
from millbeck.pipeline.connect.postgres.replication_frames import ProtocolError
from millbeck.pipeline.connect.postgres.share import entries_of
from millbeck.pipeline.connect.postgres.tables import Column, ColumnType, Table, TableId
from tests.unit.pipeline.connect.postgres import messages

ORDERS, OTHERS = 16, 17


class MemorySpool:
    def __init__(self) -> None:
        self.path = "memory"
        self.data = b""
        self.is_finished = self.is_discarded = False

    @property
    def size(self) -> int:
        return len(self.data)

    def write(self, data: bytes) -> None:
        self.data += data

    def finish(self) -> None:
        self.is_finished = True

    def discard(self) -> None:
        self.is_discarded = True


def described(relation: Relation) -> Table:
    return Table(
        id=TableId(relation.schema, relation.name),
        columns=tuple(Column(name=column.name, type=ColumnType("text")) for column in relation.columns),
    )


def made(half: HalfRead | None = None, **settings: str) -> tuple[TransactionAssembler, list[MemorySpool]]:
    spools: list[MemorySpool] = []

    def spool() -> MemorySpool:
        spools.append(MemorySpool())
        return spools[-1]

    chosen = messages.settings_of(table_include_list="public.orders", **settings)
    assembler = TransactionAssembler(chosen.capture, chosen.messages, described, spool, half)
    for oid, name in ((ORDERS, "orders"), (OTHERS, "others")):
        assembler.feed(0, messages.relation(oid, "public", name, [("id", 23, -1, True)]))
    return assembler, spools


def fed(assembler: TransactionAssembler, *parts: tuple[int, bytes]) -> list[Transaction]:
    return [found for lsn, message in parts if (found := assembler.feed(lsn, message)) is not None]


def test_a_transaction_is_whole_and_has_its_tables() -> None:
    assembler, _ = made()
    (found,) = fed(
        assembler,
        (5, messages.begin(40, 7)),
        (10, messages.insert(ORDERS, b"1")),
        (20, messages.insert(ORDERS, b"2")),
        (50, messages.commit(40, 50)),
    )
    assert [(entry.lsn, entry.shape, entry.message[:1]) for entry in entries_of(found.entries)] == [
        (5, 0, b"B"),
        (10, 1, b"I"),
        (20, 1, b"I"),
        (50, 0, b"C"),
    ]
    assert (found.end_lsn, found.lsn, found.transaction_id, found.message_type) == (50, 20, 7, "INSERT")
    assert found.shapes == {1}
    assert not assembler.is_inside


def test_transactions_without_captured_changes_leave_nothing() -> None:
    assembler, _ = made()
    assert not fed(
        assembler,
        (5, messages.begin(40, 7)),
        (10, messages.insert(OTHERS, b"1")),
        (50, messages.commit(40, 50)),
        (60, messages.begin(70, 8)),
        (80, messages.commit(70, 80)),
    )


def test_a_changed_table_gets_another_number() -> None:
    assembler, _ = made()
    fed(assembler, (5, messages.begin(40, 7)), (10, messages.insert(ORDERS, b"1")))
    assembler.feed(11, messages.relation(ORDERS, "public", "orders", [("id", 23, -1, True), ("a", 25, -1, False)]))
    (found,) = fed(assembler, (12, messages.insert(ORDERS, b"1", b"x")), (50, messages.commit(40, 50)))
    assert found.shapes == {1, 2}
    assert [len(assembler.shapes[shape].columns) for shape in (1, 2)] == [1, 2]


def test_truncates_have_an_entry_for_each_captured_table() -> None:
    assembler, _ = made()
    (found,) = fed(
        assembler,
        (5, messages.begin(40, 7)),
        (10, messages.truncate(OTHERS, ORDERS)),
        (50, messages.commit(40, 50)),
    )
    assert [entry.shape for entry in entries_of(found.entries)] == [0, 1, 0]


def test_large_transactions_go_into_a_spool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "TRANSACTION_BYTES_MAX", 1000)
    assembler, spools = made()
    parts = [(lsn, messages.insert(ORDERS, b"x" * 100)) for lsn in range(10, 40)]
    (found,) = fed(assembler, (5, messages.begin(40, 7)), *parts, (50, messages.commit(40, 50)))
    assert found.entries == b""
    assert found.spool is spools[0]
    assert spools[0].is_finished
    assert len(list(entries_of(spools[0].data))) == 32


def test_a_transaction_given_up_discards_its_spool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "TRANSACTION_BYTES_MAX", 10)
    assembler, spools = made()
    fed(assembler, (5, messages.begin(40, 7)), (10, messages.insert(ORDERS, b"1")))
    assembler.close()
    assert spools[0].is_discarded
    assert not assembler.is_inside


def test_what_debezium_has_written_of_a_transaction_is_left_out() -> None:
    assembler, _ = made(HalfRead(transaction_id=7, lsn=20, count=1))
    changes = [(lsn, messages.insert(ORDERS, value)) for lsn, value in ((10, b"1"), (20, b"2"), (20, b"3"), (30, b"4"))]
    (found,) = fed(assembler, (5, messages.begin(40, 7)), *changes, (50, messages.commit(40, 50)))
    assert [entry.message[-1:] for entry in entries_of(found.entries) if entry.shape] == [b"3", b"4"]
    # Another transaction with lower positions is whole.
    (second,) = fed(
        assembler, (6, messages.begin(60, 8)), (15, messages.insert(ORDERS, b"5")), (70, messages.commit(60, 70))
    )
    assert [entry.lsn for entry in entries_of(second.entries)] == [6, 15, 70]


def test_logical_messages() -> None:
    assembler, _ = made(message_prefix_exclude_list="secret")
    alone = messages.logical_message("p", b"c", lsn=9, is_transactional=False)
    (found,) = fed(assembler, (9, alone))
    assert (found.end_lsn, found.transaction_id) == (10, None)
    assert not fed(assembler, (9, messages.logical_message("secret", b"c", is_transactional=False)))
    (inside,) = fed(
        assembler,
        (5, messages.begin(40, 7)),
        (10, messages.logical_message("p", b"c")),
        (50, messages.commit(40, 50)),
    )
    assert inside.message_type == "MESSAGE"


def test_signals_are_kept_apart() -> None:
    assembler, _ = made(signal_data_collection="public.signals")
    assembler.feed(0, messages.relation(18, "public", "signals", [("id", 25, -1, True)]))
    (found,) = fed(
        assembler, (5, messages.begin(40, 7)), (10, messages.insert(18, b"s")), (50, messages.commit(40, 50))
    )
    assert found.entries == b""
    assert [message for _, message in found.signals] == [messages.insert(18, b"s")]


@pytest.mark.parametrize(
    "parts",
    [
        [messages.insert(ORDERS, b"1")],
        [messages.commit(1, 2)],
        [messages.begin(1, 2), messages.begin(1, 2)],
        [messages.begin(1, 2), messages.insert(99, b"1")],
        [b"Z"],
        [b""],
    ],
)
def test_what_no_server_sends_is_an_error(parts: list[bytes]) -> None:
    assembler, _ = made()
    with pytest.raises(ProtocolError):
        fed(assembler, *((1, part) for part in parts))
