from __future__ import annotations

from millbeck.client.share import AcknowledgeType
from millbeck.kernel.ids import TopicPartition
from millbeck.simulation.histories import share_history
from millbeck.simulation.histories.share_history import ShareHistory

T = TopicPartition("t", 0)
ACCEPT, RELEASE = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE


def _kinds(history: ShareHistory) -> list[str]:
    return [each.kind for each in history.check(confirmed_min=0)]


def test_a_record_that_comes_back_until_it_is_accepted_is_as_it_should_be() -> None:
    history = ShareHistory(2)
    history.produced[T, 0] = None
    history.delivered(T, 0, fetched_s=1, delivery_count=1)
    history.acknowledged(T, 0, RELEASE)
    history.confirmed("a", T, 0, RELEASE, 2)
    history.delivered(T, 0, fetched_s=3, delivery_count=2)
    history.acknowledged(T, 0, ACCEPT)
    history.confirmed("b", T, 0, ACCEPT, 4)
    history.start_seen(T, 1)
    assert _kinds(history) == []
    assert (history.confirmed_count, history.redelivered_count) == (2, 1)


def test_what_may_not_be_is_found() -> None:
    history = ShareHistory(2)
    for offset in range(3):
        history.produced[T, offset] = None
    history.delivered(T, 0, fetched_s=1, delivery_count=1)
    history.confirmed("a", T, 0, ACCEPT, 2)
    history.delivered(T, 0, fetched_s=1.5, delivery_count=1)
    assert history.anomalies == [], "it was under way already"
    history.delivered(T, 0, fetched_s=3, delivery_count=3)
    history.confirmed("b", T, 0, ACCEPT, 4)
    history.delivered(T, 1, fetched_s=3, delivery_count=1)
    history.start_seen(T, 2)
    history.start_seen(T, 1)
    assert _kinds(history) == [
        share_history.TOO_MANY_DELIVERIES,
        share_history.FINAL_REOPENED,
        share_history.ACCEPTED_TWICE,
        share_history.START_WENT_BACK,
        share_history.SKIPPED,
        share_history.LOST,
    ]


def test_a_run_in_which_nothing_happened_is_empty() -> None:
    assert [each.kind for each in ShareHistory(2).check(confirmed_min=1)] == [share_history.VACUOUS]


def test_what_is_given_up_needs_a_letter_and_what_is_accepted_has_none() -> None:
    history = ShareHistory(2)
    for offset in range(4):
        history.produced[T, offset] = None
        history.values[T, offset] = b"%d" % offset
        history.delivered(T, offset, fetched_s=1, delivery_count=2)
    history.acknowledged(T, 0, AcknowledgeType.REJECT)
    history.confirmed("a", T, 0, AcknowledgeType.REJECT, 2)
    history.acknowledged(T, 1, ACCEPT)
    history.confirmed("a", T, 1, ACCEPT, 2)
    history.start_seen(T, 4)
    history.dead_letter_seen(T, 3, value=b"3", is_rejected=False, delivery_count=2)
    history.check_letters()
    assert _kinds(history) == [share_history.LETTER_MISSING] * 2
    history.dead_letter_seen(T, 0, value=b"0", is_rejected=True, delivery_count=1)
    history.dead_letter_seen(T, 2, value=b"2", is_rejected=False, delivery_count=2)
    history.anomalies.clear()
    history.check_letters()
    assert _kinds(history) == []
    history.dead_letter_seen(T, 1, value=b"other", is_rejected=False, delivery_count=1)
    history.check_letters()
    assert _kinds(history) == [
        share_history.LETTER_WRONG,
        share_history.LETTER_WRONG,
        share_history.LETTER_OF_ACCEPTED,
    ]
