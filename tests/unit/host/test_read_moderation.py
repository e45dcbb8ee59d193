"""Who is made to wait for company and who is not, on a clock that the test moves."""

from __future__ import annotations

import pytest

from millbeck.host.read_moderation import (
    AT_ONCE_S,
    BYTES_PER_SECOND_MAX,
    BYTES_PER_SECOND_MIN,
    READ_BYTES_MAX,
    READ_BYTES_MIN,
    REST_S,
    TRIAL_READS,
    WAITING_MIN,
    WINDOW_S,
    WINDOWS_WITHOUT_MAX,
    ReadModeration,
)

HANDLING_S = 0.000_1
REQUEST_BYTES = 16 << 10


class Client:
    """Sends a request each time that it may, read by a broker that obeys the moderation."""

    def __init__(self, *, waits_for_replies: bool, read_bytes: int = REQUEST_BYTES, answers_after_s: float = 0.000_05):
        self.moderation = ReadModeration()
        self.now = 100.0
        self.read_bytes = read_bytes
        self.gap_s = answers_after_s if waits_for_replies else AT_ONCE_S / 2
        self.rests: list[float] = []

    def send(self, count: int) -> list[bool]:
        """Whether each of the reads had to wait."""
        waited = []
        for _ in range(count):
            self.now += self.gap_s
            rest_s = self.moderation.on_readable(self.now)
            waited.append(rest_s > 0)
            if rest_s > 0:
                self.rests.append(rest_s)
                self.now += rest_s
            self.moderation.read_at, self.moderation.size_bytes = self.now, self.read_bytes
            self.now += HANDLING_S
            self.moderation.handled_at = self.now
        return waited


def _reads_of(seconds: float) -> int:
    return int(seconds / HANDLING_S)


def test_a_stream_is_read_in_company_after_a_window_and_for_as_long_as_it_lasts() -> None:
    client = Client(waits_for_replies=False)
    waited = client.send(_reads_of(4 * WINDOW_S))
    first = waited.index(True)
    assert first * HANDLING_S >= WINDOW_S * 0.9
    assert all(waited[first:])
    assert all(client.send(10 * TRIAL_READS))


def test_a_rest_is_counted_from_the_read_before() -> None:
    client = Client(waits_for_replies=False)
    client.send(_reads_of(4 * WINDOW_S))
    assert client.rests[-1] == pytest.approx(REST_S - HANDLING_S - client.gap_s)


def test_a_client_that_waits_for_replies_is_left_alone_after_a_short_trial() -> None:
    client = Client(waits_for_replies=True)
    waited = client.send(_reads_of(4 * WINDOW_S))
    first = waited.index(True)
    assert waited[first : first + TRIAL_READS + 1] == [True] * TRIAL_READS + [False]
    assert sum(waited) <= 3 * TRIAL_READS


def test_trials_that_fail_become_rare() -> None:
    client = Client(waits_for_replies=True)
    begun_at = client.now
    client.send(40_000)
    assert sum(client.rests) < 0.02 * (client.now - begun_at)
    trials = len(client.rests) // TRIAL_READS
    assert trials >= 6
    client.send(40_000)
    assert len(client.rests) // TRIAL_READS - trials <= 1


@pytest.mark.parametrize("found", [WAITING_MIN, WAITING_MIN - 1])
def test_rests_go_on_while_enough_reads_find_something_waiting(found: int) -> None:
    client = Client(waits_for_replies=False)
    client.send(_reads_of(2 * WINDOW_S))
    while client.moderation._read_count:
        client.send(1)
    at_once_s = client.gap_s
    # The read that ended the window is the first of the trial, and found something.
    for index in range(1, TRIAL_READS):
        client.gap_s = at_once_s if index < found else 5 * AT_ONCE_S
        client.send(1)
    client.gap_s = at_once_s
    assert client.send(1) == [found >= WAITING_MIN]


def test_a_stream_that_failed_once_is_tried_again_soon() -> None:
    client = Client(waits_for_replies=False)
    client.send(_reads_of(4 * WINDOW_S))
    at_once_s, client.gap_s = client.gap_s, 5 * AT_ONCE_S
    client.send(2 * TRIAL_READS)
    client.gap_s = at_once_s
    assert any(client.send(_reads_of(3 * WINDOW_S)))


def test_trials_do_not_become_rarer_without_end() -> None:
    client = Client(waits_for_replies=True)
    client.moderation._windows_without = WINDOWS_WITHOUT_MAX
    client.send(_reads_of(4 * WINDOW_S))
    assert client.moderation._windows_without == WINDOWS_WITHOUT_MAX
    assert WINDOWS_WITHOUT_MAX - 4 <= client.moderation._windows_left <= WINDOWS_WITHOUT_MAX


def test_a_trial_that_succeeds_brings_the_next_ones_nearer() -> None:
    client = Client(waits_for_replies=False)
    client.moderation._windows_without = 63
    client.send(_reads_of(2 * WINDOW_S))
    assert client.moderation._windows_without < 32


def _waits(read_bytes: int, bytes_per_second: float) -> bool:
    """Whether a stream with such reads at such a rate is made to rest."""
    moderation = ReadModeration()
    now = 100.0
    for _ in range(2_000):
        if moderation.on_readable(now) > 0:
            return True
        moderation.read_at, moderation.size_bytes, moderation.handled_at = now, read_bytes, now
        now += read_bytes / bytes_per_second
    return False


@pytest.mark.parametrize(
    ("read_bytes", "waits"),
    [(READ_BYTES_MIN - 64, False), (READ_BYTES_MIN, True), (READ_BYTES_MAX, True), (READ_BYTES_MAX + 64, False)],
)
def test_single_requests_and_long_reads_never_wait(read_bytes: int, waits: bool) -> None:
    # Slow enough for the rate, fast enough that the next read comes within the rest.
    assert _waits(read_bytes, 190e6) is waits


@pytest.mark.parametrize(
    ("bytes_per_second", "waits"),
    [
        (BYTES_PER_SECOND_MIN * 0.98, False),
        (BYTES_PER_SECOND_MIN * 1.05, True),
        (BYTES_PER_SECOND_MAX * 0.95, True),
        (BYTES_PER_SECOND_MAX * 1.02, False),
    ],
)
def test_neither_a_slow_nor_a_very_fast_stream_waits(bytes_per_second: float, waits: bool) -> None:
    assert _waits(READ_BYTES_MIN, bytes_per_second) is waits


def test_a_stream_that_becomes_very_fast_waits_no_longer() -> None:
    client = Client(waits_for_replies=False)
    assert client.send(_reads_of(4 * WINDOW_S))[-1]
    client.read_bytes = 128 << 10
    client.send(2 * TRIAL_READS)
    assert not any(client.send(_reads_of(4 * WINDOW_S)))


def test_what_had_no_room_in_the_read_before_is_read_at_once_and_proves_nothing() -> None:
    client = Client(waits_for_replies=False)
    client.send(_reads_of(4 * WINDOW_S))
    waiting = client.moderation._waiting_count
    client.moderation.handled_at = 0.0
    assert client.send(1) == [False]
    assert client.moderation._waiting_count == waiting


def test_the_first_read_after_a_pause_does_not_wait() -> None:
    client = Client(waits_for_replies=False)
    client.send(_reads_of(4 * WINDOW_S))
    client.now += 2 * REST_S
    assert client.send(2) == [False, True]


def test_a_window_with_a_pause_in_it_says_nothing() -> None:
    moderation = ReadModeration()
    now = 100.0
    for _ in range(50):
        # The rate over burst and pause is that of a stream, and the next burst must not wait for company.
        for _ in range(75):
            assert moderation.on_readable(now) <= 0
            moderation.read_at, moderation.size_bytes = now, REQUEST_BYTES
            now += HANDLING_S
        now += 3 * WINDOW_S
