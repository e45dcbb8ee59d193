from __future__ import annotations

from millbeck.metadata.image.client_quotas import ClientQuotasImage, quota_entity
from millbeck.metadata.records import QuotaEntityPart


def test_an_entity_is_the_same_in_any_order_of_its_parts() -> None:
    user, client = QuotaEntityPart(entity_type="user", entity_name="u"), QuotaEntityPart("client-id", None)
    assert quota_entity([user, client]) == quota_entity([client, user]) == (("client-id", None), ("user", "u"))


def test_defaults_are_written_before_names() -> None:
    image = ClientQuotasImage(
        by_entity={(("user", "a"),): {"y": 1.0, "x": 2.0}, (("user", None),): {"x": 3.0}, (("ip", "::1"),): {"z": 4.0}}
    )
    written = [(record.entity[0].entity_name, record.key, record.value) for record in image.records()]
    assert written == [("::1", "z", 4.0), (None, "x", 3.0), ("a", "x", 2.0), ("a", "y", 1.0)]
