from millbeck.coordinator.share.partition.changes import StateTransition
from millbeck.coordinator.share.states import StateBatch


def test_a_change_without_batches_is_nothing_to_write() -> None:
    assert not StateTransition([])
    assert StateTransition([StateBatch(0, 0, 2, 1)])
    assert StateTransition([StateBatch(0, 0, 0, 1)], is_applied=True).is_applied
