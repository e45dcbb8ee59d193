"""Who is made to wait for company and who is not, on a clock that the test moves."""

from __future__ import annotations

import pytest

from millbeck.host.read_moderation import (
    AT_ONCE_S,
    READ_BYTES_MAX,
    READ_BYTES_MIN,
    REST_S,
    TRIAL_READS,
    WAITING_MIN,
    WINDOW_S,
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
            rest_s = self.moderation.rest_s(self.now)
            waited.append(rest_s > 0)
            if rest_s > 0:
                self.rests.append(rest_s)
                self.now += rest_s
            self.moderation.note_read(self.now, self.read_bytes)
            self.now += HANDLING_S
            self.moderation.note_handled(self.now)
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
    client.send(40_000)
    assert len(client.rests) // TRIAL_READS - trials <= 1


@pytest.mark.parametrize("found", [WAITING_MIN, WAITING_MIN - 1])
def test_rests_go_on_while_enough_reads_find_something_waiting(found: int) -> None:
    client = Client(waits_for_replies=False)
    client.send(_reads_of(2 * WINDOW_S))
    while client.moderation._read_count:  # type: ignore[attr-defined]
        client.send(1)
    at_once_s = client.gap_s
    for index in range(TRIAL_READS):
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


@pytest.mark.parametrize("read_bytes", [READ_BYTES_MIN - 1, READ_BYTES_MAX + 1, 1 << 20])
def test_single_requests_and_long_reads_never_wait(read_bytes: int) -> None:
    client = Client(waits_for_replies=False, read_bytes=read_bytes)
    assert not any(client.send(_reads_of(20 * WINDOW_S)))


@pytest.mark.parametrize("pace_s", [0.000_7, 0.000_01])
def test_neither_a_slow_nor_a_very_fast_stream_waits(pace_s: float) -> None:
    """16 KB every 0.7 ms are 23 MB/s; every 10 µs, more than comes through a socket's buffer."""
    moderation = ReadModeration()
    now = 100.0
    for _ in range(2_000):
        assert moderation.rest_s(now) <= 0
        moderation.note_read(now, REQUEST_BYTES)
        moderation.note_handled(now)
        now += pace_s


def test_the_first_read_after_a_pause_does_not_wait() -> None:
    client = Client(waits_for_replies=False)
    client.send(_reads_of(4 * WINDOW_S))
    client.now += 2 * REST_S
    assert client.send(2) == [False, True]


def test_a_window_with_a_pause_in_it_says_nothing() -> None:
    moderation = ReadModeration()
    now = 100.0
    for _ in range(200):
        for _ in range(20):
            assert moderation.rest_s(now) <= 0
            moderation.note_read(now, REQUEST_BYTES)
            now += HANDLING_S
        now += 3 * WINDOW_S
