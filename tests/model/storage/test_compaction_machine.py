"""Compaction against the uncompacted log.

Goal: whatever was written, compacted in rounds of any size, deleted, cut, killed or lost with the power at any step,
the log is the table its history says (K1 to K4), and a reader that is in the middle ends with the same map. Method: a
stateful property on the simulated disk, and one history whose compaction is stopped at every single change of the disk.
The mutants at the end break one rule each, and one of the two must notice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from millbeck import compiled
from millbeck.records.compression import Codec
from millbeck.records.native import compaction
from millbeck.records.native.compaction import gather
from millbeck.storage import interrupted
from millbeck.storage.compaction import mapping, offset_map, plan, rewriting
from millbeck.storage.compaction.rewriting import Rewriter
from millbeck.storage.compaction.transactions import CleanedTransactionMetadata
from millbeck.storage.directory import LogDirectory
from millbeck.storage.swap import Swap, SwapState
from tests.model.storage.table import RETENTION_MS, Crash, Reader, Table

PLAIN, IDEMPOTENT, TRANSACTIONAL = -1, (1, 2), (11, 12)
KEYS = st.sampled_from([b"a", b"b", b"c", b"key-that-is-longer"])
VALUES = st.one_of(st.none(), st.binary(max_size=3), st.just(b"v" * 100))
PAIRS = st.lists(st.tuples(st.one_of(KEYS, KEYS, KEYS, st.none()), VALUES), min_size=1, max_size=4)
SIZES = st.sampled_from([150, 300, 600, 1 << 20])


class CompactionMachine(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 2**32))
    def start(self, seed: int) -> None:
        self.table = Table(seed)

    @rule(
        pairs=PAIRS,
        producer_id=st.sampled_from([PLAIN, PLAIN, *IDEMPOTENT, *TRANSACTIONAL]),
        codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4, Codec.GZIP]),
    )
    def put(self, pairs: list[tuple[bytes | None, bytes | None]], producer_id: int, codec: Codec) -> None:
        self.table.put(pairs, producer_id=producer_id, transactional=producer_id in TRANSACTIONAL, codec=codec)

    @precondition(lambda self: self.table.open)
    @rule(committed=st.booleans())
    def end_transaction(self, committed: bool) -> None:
        self.table.end_transaction(next(iter(self.table.open)), committed=committed)

    @rule()
    def roll(self) -> None:
        self.table.roll()

    @rule(time_ms=st.sampled_from([1, RETENTION_MS // 2, RETENTION_MS]))
    def wait(self, time_ms: int) -> None:
        self.table.clock_ms += time_ms

    @rule(map_bytes_max=SIZES, rolls=st.booleans(), is_all_dirty=st.booleans())
    def compact(self, map_bytes_max: int, rolls: bool, is_all_dirty: bool) -> None:
        if rolls:
            self.table.roll()
        if is_all_dirty:
            self.table.checkpoint = None
        self.table.compact(map_bytes_max)

    @rule(
        map_bytes_max=SIZES,
        state=st.sampled_from([SwapState.SECURED, SwapState.NAMED, SwapState.INSTALLED, SwapState.RENAMED]),
        what=st.sampled_from(["append", "read", "delete", "truncate", "roll"]),
        share=st.floats(0, 1),
    )
    def compact_while_the_log_changes(self, map_bytes_max: int, state: SwapState, what: str, share: float) -> None:
        def change(now: SwapState) -> None:
            if now is state:
                self.change(what, share)

        self.table.roll()
        self.table.compact(map_bytes_max, change)

    def change(self, what: str, share: float) -> None:
        table = self.table
        start, end = table.log.log_start_offset, table.log.end_offset
        if what == "append":
            table.put([(b"a", b"late")])
        elif what == "read":
            assert Reader(start, 0).read_all(table.log) == table.expected()
        elif what == "delete":
            table.delete_records(start + int((end - start) * share))
        elif what == "truncate":
            lowest = min(end, max(table.untouchable_from, start))
            table.truncate(lowest + int((end - lowest) * share))
        else:
            table.roll()

    @rule(
        map_bytes_max=SIZES,
        state=st.sampled_from([SwapState.SECURED, SwapState.NAMED, SwapState.INSTALLED, SwapState.RENAMED]),
        survival=st.sampled_from([None, 0.0, 1.0]),
    )
    def compact_and_crash(self, map_bytes_max: int, state: SwapState, survival: float | None) -> None:
        def crash(now: SwapState) -> None:
            if now is state:
                raise Crash

        self.table.roll()
        self.table.log.flush()
        try:
            self.table.compact(map_bytes_max, crash)
        except Crash:
            self.table.lose_power(survival)
            self.table.reopen()

    @rule(is_clean=st.booleans())
    def restart(self, is_clean: bool) -> None:
        if is_clean:
            assert self.table.directory.close()
        self.table.kill()
        self.table.reopen()

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        self.change("delete", share)

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        self.change("truncate", share)

    @rule(size=st.sampled_from([1, 400]))
    def read_on(self, size: int) -> None:
        """A reader that is done within the retention of tombstones has seen all there is to see."""
        table = self.table
        if table.clock_ms >= table.reader.started_ms + RETENTION_MS:
            table.reader = Reader(table.log.log_start_offset, table.clock_ms)
        if not table.reader.poll(table.log, size):
            assert table.reader.found == table.expected()
            table.reader = Reader(table.log.log_start_offset, table.clock_ms)

    @rule(offset_ms=st.integers(-50, 3000))
    def look_for_a_time(self, offset_ms: int) -> None:
        if hasattr(self, "table"):
            self.table.check_times(1_000_000 + offset_ms)

    @invariant()
    def everything_holds(self) -> None:
        if hasattr(self, "table"):
            self.table.check()


TestCompactionMachine = CompactionMachine.TestCase
TestCompactionMachine.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)


def _history(table: Table) -> None:
    """Several segments with all there is: values, tombstones whose time is over, transactions of both kinds."""
    for number in range(4):
        table.put([(b"a", b"%d" % number), (b"gone", b"%d" % number)], producer_id=1)
        table.put([(b"b", b"%d" % number)], producer_id=11, transactional=True, codec=Codec.LZ4)
        table.end_transaction(11, committed=number % 2 == 0)
        table.put([(b"once-%d" % number, b"v" * 200), (None, b"no key")])
        table.roll()
    table.put([(b"gone", None), (b"c", b"1")], producer_id=2)
    table.put([(b"d", b"1")])
    table.roll()
    table.compact()
    table.directory.checkpoint_job()()
    table.clock_ms += RETENTION_MS
    for number in range(3):
        table.put([(b"a", b"x%d" % number), (b"c", b"x%d" % number)], producer_id=1)
        table.put([(b"b", b"x%d" % number)], producer_id=12, transactional=True)
        table.end_transaction(12, committed=number == 1)
        table.put([(b"late-%d" % number, None)])
        table.roll()
    table.put([(b"tail", b"1")])
    table.log.flush()


class _Stop:
    """Stops the machine right after the n-th change of its disk."""

    def __init__(self, table: Table, changes: int) -> None:
        self.left = changes
        self.table = table
        table.disk.trace = self

    def __call__(self, *event: object) -> None:
        if self.left == 0:
            self.table.disk.trace = None
            raise Crash
        self.left -= 1


def _compact_and_stop(seed: int, changes: int, survival: float | None, changes_of_start: int) -> bool:
    """Crash at a change of the disk in the middle of compaction, and once more in the next start; check what is left.

    Whether the crash came before the end.
    """
    table = Table(seed, internal_segment_bytes="900")
    _history(table)
    expected, end_offset = table.expected(), table.log.end_offset
    _Stop(table, changes)
    try:
        table.compact()
    except Crash:
        pass
    else:
        table.disk.trace = None
        return False
    table.lose_power(survival)
    _Stop(table, changes_of_start)
    try:
        table.reopen()
    except Crash:
        table.lose_power(survival)
        table.reopen()
    table.disk.trace = None
    assert table.log.end_offset == end_offset
    assert table.expected() == expected
    table.check()
    table.checkpoint = None
    table.compact()
    table.check()
    assert not [name for name in table.log.environment.files.names(table.log.directory) if ".cleaned" in name]
    return True


@pytest.mark.parametrize("survival", [0.0, 0.5, 1.0])
def test_a_crash_at_every_change_of_the_disk_leaves_the_old_or_the_new(survival: float) -> None:
    changes = 0
    while _compact_and_stop(changes, changes, survival, changes_of_start=changes % 17):
        changes += 1
    assert changes > 30


def _drop_tombstones_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    choose: Any = compaction.choose

    def without_horizon(*arguments: Any) -> Any:
        return choose(*arguments[:7], True, arguments[8])

    monkeypatch.setattr(rewriting, "choose", without_horizon)


def _take_aborted_records_for_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CleanedTransactionMetadata, "is_aborted", lambda self, producer_id, base_offset: False)


def _drop_markers_before_their_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CleanedTransactionMetadata, "end_committed", lambda self, producer_id: False)
    monkeypatch.setattr(CleanedTransactionMetadata, "end_aborted", lambda self, producer_id, offset: None)


def _forget_live_producers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rewriter, "_is_last_of_producer", lambda self, reader: False)


def _keep_the_first_instead_of_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    def backwards(payload: bytes, start: int, count: int, base: int, first: int, latest: Any, dead: bytearray) -> Any:
        number = len(dead)
        found = gather(payload, start, count, base, first, dict(latest), bytearray(number))
        mine: dict[bytes, int] = {}
        gather(payload, start, count, base, first, mine, dead)
        for key, at in mine.items():
            if key in latest:
                dead[at] = 1
        latest.update({key: at for key, at in mine.items() if key not in latest})
        return found

    monkeypatch.setattr(offset_map, "gather", backwards)


def _claim_more_than_was_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    add_source = mapping._add_source

    def always_complete(*arguments: Any) -> bool:
        add_source(*arguments)
        return True

    monkeypatch.setattr(mapping, "_add_source", always_complete)


def _leave_timestamps_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "rebase", lambda payload, start, shift: payload)


def _compact_what_is_not_stable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        plan, "_first_uncleanable", lambda log, first_dirty, high_watermark, now_ms: log.active.base_offset
    )


def _do_not_sync_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Swap, "_sync", lambda self: None)


def _let_the_end_of_a_segment_go(monkeypatch: pytest.MonkeyPatch) -> None:
    rewrite = Rewriter.rewrite
    monkeypatch.setattr(
        Rewriter,
        "rewrite",
        lambda self, reader, output, ends_segment: rewrite(self, reader, output, ends_segment=False),
    )


def _do_not_sync_while_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    settle = interrupted.complete_or_undo

    class Lax:
        def __init__(self, files: Any) -> None:
            self._files = files

        def __getattr__(self, name: str) -> Any:
            return getattr(self._files, name)

        def sync_directory(self, path: str) -> None:
            return None

    monkeypatch.setattr(
        interrupted,
        "complete_or_undo",
        lambda files, directory, names: settle(Lax(files), directory, names),
    )


def _finish_swaps_out_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    remove_leftovers = interrupted._remove_leftovers

    def finish_all(files: Any, directory: str, names: list[str]) -> None:
        swaps = [name for name in names if name.endswith(".swap")]
        if swaps:
            interrupted._finish_swap(files, directory, swaps)
        remove_leftovers(files, directory, files.names(directory))

    monkeypatch.setattr(interrupted, "_remove_leftovers", finish_all)


def _do_not_secure_the_recovery_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogDirectory, "securing_job", lambda self, log, offset: None)


def _truncate_over_a_swap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Swap, "complete_or_roll_back", lambda self: None)


def _install_whatever_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Swap, "_has_changed", lambda self: False)


def _write_keys_twice(seed: int) -> None:
    """In one batch, in batches after each other, and in segments."""
    table = Table(seed)
    for number in range(3):
        table.put([(b"a", b"%d" % number), (b"a", b"again"), (b"b", b"%d" % number)])
        table.put([(b"b", b"%d" % seed)])
        table.roll()
    table.compact()
    table.check()


def _keep_a_committed_transaction(seed: int) -> None:
    """Its marker stays as long as its records, however often and late the log is compacted."""
    table = Table(seed)
    for committed in (True, False):
        table.put([(b"kept-%d" % committed, b"1")], producer_id=11, transactional=True)
        table.end_transaction(11, committed=committed)
    table.put([(b"x", b"1")])
    table.roll()
    for _ in range(3):
        table.checkpoint = None
        table.compact()
        table.check()
        table.clock_ms += RETENTION_MS


def _lose_the_snapshots(seed: int) -> None:
    """Producers whose records are all gone are known from the batches alone."""
    table = Table(seed)
    for number in range(3):
        table.put([(b"a", b"%d" % number)], producer_id=1)
        table.put([(b"a", b"%d" % number)], producer_id=11, transactional=True)
        table.end_transaction(11, committed=number == 1)
    table.put([(b"a", b"last")])
    table.roll()
    table.compact()
    table.kill()
    table.forget_snapshots()
    table.reopen()
    table.check()


def _delete_while_compacting(seed: int) -> None:
    """Retention takes segments of which the new ones are about to be put in place."""
    table = Table(seed, internal_segment_bytes="400")
    for number in range(6):
        table.put([(b"a", b"v" * 100), (b"k%d" % number, b"v" * 100)])
        table.roll()
    table.put([(b"tail", b"1")])

    def delete(state: SwapState) -> None:
        if state is SwapState.SECURED:
            table.delete_records(2 + seed % 8)

    table.compact(between=delete)
    table.check()
    table.kill()
    table.reopen()
    table.check()


def _truncate_while_compacting(seed: int) -> None:
    """What was cut off while new segments were on their way does not come back with them."""
    table = Table(seed, internal_segment_bytes="400")
    for number in range(4):
        table.put([(b"k%d" % number, b"v" * 100)])
        table.put([(b"j%d" % number, b"v" * 100)])
        table.roll()

    def truncate(state: SwapState) -> None:
        if state is (SwapState.NAMED, SwapState.INSTALLED)[seed % 2]:
            table.truncate(seed % 6 + 1)
            raise Crash

    with contextlib.suppress(Crash):
        table.compact(between=truncate)
    table.lose_power(0.0)
    table.reopen()
    table.check()
    assert table.log.end_offset == max((one.offset + 1 for one in table.written), default=0)


def _crash_while_starting(seed: int) -> None:
    """A start that finishes a swap may be cut short as well."""
    table = Table(seed, internal_segment_bytes="900")
    _history(table)

    def crash(state: SwapState) -> None:
        if state is SwapState.NAMED:
            raise Crash

    with contextlib.suppress(Crash):
        table.compact(between=crash)
    table.lose_power(1.0)
    _Stop(table, seed % 50)
    with contextlib.suppress(Crash):
        table.reopen()
        table.disk.trace = None
    table.lose_power(0.5)
    table.reopen()
    table.check()


def _crash_with_half_the_names(seed: int) -> None:
    """Twice, when the names have changed and may not be durable: a record must not survive its tombstone."""
    table = Table(seed, internal_segment_bytes="400")
    table.put([(b"x", b"v" * 150), (b"y", b"v" * 150)])
    table.roll()
    table.put([(b"x", None)])
    table.put([(b"z", b"v" * 250)])
    table.roll()

    def crash(state: SwapState) -> None:
        if state is SwapState.NAMED:
            raise Crash

    for _ in range(2):
        table.log.flush()
        with contextlib.suppress(Crash):
            table.compact(amid=crash)
        table.lose_power(0.5)
        table.reopen()
        table.check()
        table.clock_ms += RETENTION_MS


def _crash_with_new_segments_in_use(seed: int) -> None:
    """The old names are gone before a crash only if the new ones are there after it."""
    table = Table(seed, internal_segment_bytes="900")
    _history(table)
    wanted = (SwapState.INSTALLED, SwapState.RENAMED)[seed % 2]

    def crash(state: SwapState) -> None:
        if state is wanted:
            raise Crash

    with contextlib.suppress(Crash):
        table.compact(amid=crash)
    table.lose_power(0.5)
    table.reopen()
    table.check()


def _stop_where_the_recovery_point_lies_in_a_gap(seed: int) -> None:
    """The checkpoint on disk names an offset that compaction has removed."""
    table = Table(seed)
    table.put([(b"a", b"1")])
    table.put([(b"b", b"1")])
    table.log.flush()
    table.directory.checkpoint_job()()
    for _ in range(2):
        for key in (b"c", b"a", b"b"):
            table.put([(key, b"2")])
    table.roll()
    table.compact()
    table.kill()
    table.reopen()
    table.check()


Mutate = Callable[[pytest.MonkeyPatch], None]

MUTANTS: dict[str, Mutate] = {
    "tombstones go at once": _drop_tombstones_at_once,
    "aborted records count": _take_aborted_records_for_committed,
    "a full map claims to be complete": _claim_more_than_was_mapped,
    "a new base time moves timestamps": _leave_timestamps_behind,
    "what is undecided is compacted": _compact_what_is_not_stable,
}

SCENARIOS: dict[str, tuple[Callable[[int], None], Mutate]] = {
    "the first record of a key stays": (_write_keys_twice, _keep_the_first_instead_of_the_latest),
    "markers go before their data": (_keep_a_committed_transaction, _drop_markers_before_their_data),
    "the last batch of a live producer goes": (_lose_the_snapshots, _forget_live_producers),
    "a swap ignores that the log has changed": (_delete_while_compacting, _install_whatever_has_changed),
    "truncation does not end a swap": (_truncate_while_compacting, _truncate_over_a_swap),
    "names are not synced between the steps": (_crash_with_new_segments_in_use, _do_not_sync_names),
    "settling does not sync between its steps": (_crash_while_starting, _do_not_sync_while_settling),
    "swaps are finished out of order": (_crash_with_half_the_names, _finish_swaps_out_of_order),
    "the recovery point is not secured": (
        _stop_where_the_recovery_point_lies_in_a_gap,
        _do_not_secure_the_recovery_point,
    ),
}


@pytest.mark.skipif(compiled.in_use(), reason="a compiled class keeps its methods")
@pytest.mark.parametrize("mutate", MUTANTS.values(), ids=MUTANTS.keys())
def test_the_property_notices(mutate: Mutate, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    # The rarest is met once in some ninety examples; what is drawn depends on the modules that are loaded.
    hunting = settings(
        TestCompactionMachine.settings, max_examples=2_000, phases=[Phase.generate], derandomize=True, database=None
    )
    with pytest.raises(Exception):  # noqa: B017
        run_state_machine_as_test(CompactionMachine, settings=hunting)


@pytest.mark.skipif(compiled.in_use(), reason="a compiled class keeps its methods")
@pytest.mark.parametrize(("scenario", "mutate"), SCENARIOS.values(), ids=SCENARIOS.keys())
def test_a_scenario_holds_and_notices_its_mutant(
    scenario: Callable[[int], None], mutate: Mutate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_seeds() -> None:
        for seed in range(100):
            scenario(seed)

    run_seeds()
    mutate(monkeypatch)
    with pytest.raises(Exception):  # noqa: B017
        run_seeds()
