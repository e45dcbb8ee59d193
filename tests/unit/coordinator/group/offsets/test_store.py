from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millbeck.coordinator.group.offsets.store import OffsetAndMetadata, OffsetStore
from millbeck.coordinator.group.records import OffsetCommitKey, OffsetCommitValue
from millbeck.kernel.timeline import SnapshotRegistry


def put(store: OffsetStore, place: tuple[str, str, int], value: int | None, *, at: int = 0, producer: int = -1) -> None:
    stored = None if value is None else OffsetCommitValue(offset=value, commit_timestamp=1)
    store.replay(OffsetCommitKey(*place), stored, offset=at, producer_id=producer)


def offset(store: OffsetStore, place: tuple[str, str, int]) -> int | None:
    committed = store.get(*place)
    return None if committed is None else committed.offset


P = ("g", "t", 0)
Q = ("g", "t", 1)


def test_a_record_becomes_what_is_committed() -> None:
    value = OffsetCommitValue(5, 3, "note", 77, 99, b"i" * 16)
    committed = OffsetAndMetadata.from_record(value, 12)
    assert committed == (5, 3, "note", 77, 99, b"i" * 16, 12)
    assert committed.has_own_expiry
    assert not OffsetAndMetadata.from_record(OffsetCommitValue(), 0).has_own_expiry


def test_the_last_one_wins_and_a_tombstone_removes() -> None:
    store = OffsetStore(SnapshotRegistry())
    put(store, P, 1)
    put(store, P, 2)
    put(store, Q, 3)
    assert (offset(store, P), len(store), store.count("g"), store.group_ids()) == (2, 2, 2, ["g"])
    put(store, P, None)
    put(store, P, None)
    assert list(store.of_group("g")) == [("t", 1)]
    put(store, Q, None)
    assert (store.group_ids(), len(store), store.of_group("g")) == ([], 0, {})


def test_the_past_is_read_and_the_future_undone() -> None:
    registry = SnapshotRegistry()
    store = OffsetStore(registry)
    put(store, P, 1)
    registry.snapshot(1)
    put(store, P, 2)
    put(store, Q, 9)
    then = store.get(*P, 1)
    assert then is not None
    assert then.offset == 1
    assert list(store.of_group("g", 1)) == [("t", 0)]
    assert store.of_group("none", 1) == {}
    registry.revert_to(1)
    assert (offset(store, P), offset(store, Q)) == (1, None)


def test_open_transactions_wait_beside_the_store() -> None:
    store = OffsetStore(SnapshotRegistry())
    put(store, P, 5, at=1, producer=7)
    put(store, P, 6, at=2, producer=8)
    assert (offset(store, P), store.is_pending(*P), store.has_pending("g"), store.has_pending("h")) == (
        None,
        True,
        True,
        False,
    )
    assert store.pending_places("g") == [("t", 0)]
    store.end_transaction(8, is_committed=True)
    assert (offset(store, P), store.is_pending(*P)) == (6, True)
    store.end_transaction(7, is_committed=True)
    assert (offset(store, P), store.is_pending(*P)) == (6, False), "the one that stands later in the log is newer"
    store.end_transaction(7, is_committed=True)


def test_an_aborted_transaction_leaves_nothing() -> None:
    store = OffsetStore(SnapshotRegistry())
    put(store, P, 5, producer=7)
    store.end_transaction(7, is_committed=False)
    assert (offset(store, P), store.has_pending("g")) == (None, False)


def test_a_tombstone_reaches_into_open_transactions() -> None:
    store = OffsetStore(SnapshotRegistry())
    put(store, P, 5, producer=7)
    put(store, Q, 6, producer=7)
    put(store, P, None)
    assert [place for place, _ in store.all_pending()] == [Q]
    store.end_transaction(7, is_committed=True)
    assert (offset(store, P), offset(store, Q)) == (None, 6)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "remove", "begin", "commit", "abort"]),
        st.sampled_from([P, Q, ("h", "t", 0)]),
        st.sampled_from([7, 8]),
    ),
    max_size=30,
)


@given(steps=STEPS)
def test_it_equals_plain_dicts_for_any_history(steps: list[tuple[str, tuple[str, str, int], int]]) -> None:
    store = OffsetStore(SnapshotRegistry())
    model: dict[tuple[str, str, int], tuple[int, int]] = {}
    pending: dict[int, dict[tuple[str, str, int], int]] = {7: {}, 8: {}}
    for at, (step, place, producer) in enumerate(steps):
        if step == "put":
            put(store, place, at, at=at)
            model[place] = (at, at)
        elif step == "remove":
            put(store, place, None)
            model.pop(place, None)
            for places in pending.values():
                places.pop(place, None)
        elif step == "begin":
            put(store, place, at, at=at, producer=producer)
            pending[producer][place] = at
        else:
            store.end_transaction(producer, is_committed=step == "commit")
            for each, stood in pending[producer].items():
                if step == "commit" and stood > model.get(each, (0, -1))[1]:
                    model[each] = (stood, stood)
            pending[producer] = {}
    for place in (P, Q, ("h", "t", 0)):
        assert offset(store, place) == (model[place][0] if place in model else None)
        assert store.is_pending(*place) == any(place in places for places in pending.values())
