from __future__ import annotations

from uuid import UUID

from millbeck.host import real_environment
from millbeck.server.metadata.new_ids import new_uuid_text


def test_ids_are_random_and_in_the_usual_form() -> None:
    randomness = real_environment().randomness
    texts = [new_uuid_text(randomness) for _ in range(2)]
    assert texts[0] != texts[1]
    assert [str(UUID(text)) for text in texts] == texts
