from millbeck.coordinator.share.states import AcknowledgeType
from millbeck.server.share.statistics import ShareCounters


def test_counts_are_kept_by_group_and_kind() -> None:
    counters = ShareCounters()
    counters.acknowledged("g", 1, 5)
    counters.acknowledged("g", 1, 2)
    counters.acknowledged("h", 3, 1)
    counters.of_group("g").acquired_records += 4
    assert counters.by_group["g"].acknowledgements == {AcknowledgeType.ACCEPT: 7}
    assert counters.by_group["g"].acquired_records == 4
    assert counters.by_group["h"].acknowledgements == {AcknowledgeType.REJECT: 1}
