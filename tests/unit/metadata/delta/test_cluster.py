from __future__ import annotations

import pytest

from millbeck.metadata.delta.cluster import ClusterDelta
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.image.cluster import BrokerRegistration, ClusterImage
from millbeck.metadata.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

DIRECTORY = b"d" * 16
REGISTER = RegisterBrokerRecord(broker_id=1, broker_epoch=5, incarnation_id=b"i" * 16)


def _delta() -> ClusterDelta:
    delta = ClusterDelta(ClusterImage())
    delta.register_broker(REGISTER)
    return delta


def _broker(delta: ClusterDelta) -> BrokerRegistration:
    return delta.apply().brokers[1]


def test_a_broker_begins_fenced_and_is_unfenced_by_a_change() -> None:
    delta = _delta()
    assert _broker(delta).is_fenced
    delta.change_broker(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1))
    assert _broker(delta).is_active
    delta.change_broker(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, in_controlled_shutdown=1))
    assert (_broker(delta).is_fenced, _broker(delta).in_controlled_shutdown) == (False, True)
    delta.change_broker(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=1))
    assert _broker(delta).is_fenced


def test_directories_change_only_when_named() -> None:
    delta = _delta()
    delta.change_broker(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, log_dirs=[DIRECTORY]))
    delta.change_broker(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, cordoned_log_dirs=[DIRECTORY]))
    assert (_broker(delta).directories, _broker(delta).cordoned_directories) == ((DIRECTORY,), (DIRECTORY,))
    delta.change_broker(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, cordoned_log_dirs=[]))
    assert (_broker(delta).directories, _broker(delta).cordoned_directories) == ((DIRECTORY,), ())


def test_the_old_records_for_fencing_still_work() -> None:
    delta = _delta()
    delta.unfence(UnfenceBrokerRecord(id=1, epoch=5))
    assert not _broker(delta).is_fenced
    delta.fence(FenceBrokerRecord(id=1, epoch=5))
    assert _broker(delta).is_fenced


def test_a_broker_that_leaves_is_named_as_gone() -> None:
    before = _delta().apply()
    delta = ClusterDelta(before)
    delta.unregister_broker(UnregisterBrokerRecord(broker_id=1, broker_epoch=5))
    assert delta.brokers.changed == {1: None}
    assert delta.apply().brokers == {}
    assert before.brokers


def test_controllers_register() -> None:
    delta = _delta()
    delta.register_controller(RegisterControllerRecord(controller_id=7))
    assert list(delta.apply().controllers) == [7]


def test_a_change_without_effect_is_no_change() -> None:
    image = _delta().apply()
    delta = ClusterDelta(image)
    delta.change_broker(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=1))
    assert delta.apply() is image


FAULTS = {
    "unknown broker": BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=5),
    "other epoch": BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=4),
    "fenced is neither": BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=2),
    "shutdown is neither": BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, in_controlled_shutdown=-1),
}


@pytest.mark.parametrize("record", FAULTS.values(), ids=FAULTS.keys())
def test_a_change_that_can_not_be_is_a_fault(record: BrokerRegistrationChangeRecord) -> None:
    with pytest.raises(MetadataFault):
        _delta().change_broker(record)
