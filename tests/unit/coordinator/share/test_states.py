from millbeck.coordinator.share.states import STATE_AFTER, AcknowledgeType, RecordState


def test_what_is_acknowledged_or_archived_is_final() -> None:
    assert [state.name for state in RecordState if state.is_final] == ["ACKNOWLEDGED", "ARCHIVED"]


def test_every_acknowledgement_but_a_renewal_leads_somewhere() -> None:
    assert set(STATE_AFTER) == set(AcknowledgeType) - {AcknowledgeType.RENEW}
    assert STATE_AFTER[AcknowledgeType.RELEASE] is RecordState.AVAILABLE
    assert STATE_AFTER[AcknowledgeType.GAP] is STATE_AFTER[AcknowledgeType.REJECT] is RecordState.ARCHIVED
