from __future__ import annotations

from millbeck.metadata.delta.client_quotas import ClientQuotasDelta
from millbeck.metadata.image.client_quotas import ClientQuotasImage
from millbeck.metadata.records import ClientQuotaRecord, QuotaEntityPart

USER = (("user", "u"),)


def _quota(key: str, value: float = 0.0, *, remove: bool = False) -> ClientQuotaRecord:
    entity = [QuotaEntityPart(entity_type="user", entity_name="u")]
    return ClientQuotaRecord(entity=entity, key=key, value=value, remove=remove)


def test_quotas_are_set_and_removed() -> None:
    delta = ClientQuotasDelta(ClientQuotasImage(by_entity={USER: {"producer_byte_rate": 1.0}}))
    delta.set_quota(_quota("consumer_byte_rate", 2.0))
    delta.set_quota(_quota("producer_byte_rate", remove=True))
    assert delta.apply() == ClientQuotasImage(by_entity={USER: {"consumer_byte_rate": 2.0}})


def test_an_entity_without_quotas_is_forgotten() -> None:
    delta = ClientQuotasDelta(ClientQuotasImage())
    delta.set_quota(_quota("producer_byte_rate", 0.0))
    assert delta.apply().by_entity == {USER: {"producer_byte_rate": 0.0}}
    delta.set_quota(_quota("producer_byte_rate", remove=True))
    assert delta.apply() == ClientQuotasImage()
