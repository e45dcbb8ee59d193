"""The example of docs/policies.md does what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from millbeck.controller.policies import Policies, TopicRequest
from millbeck.kernel.errors import PolicyViolation

PAGE = Path(__file__).parents[3] / "docs" / "policies.md"


def test_the_example_of_the_page() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    policies = Policies(names["OurTopics"]({}), names["OurConfigs"]({}))

    def topic(name: str, **configs: str) -> TopicRequest:
        return TopicRequest(name=name, partition_count=1, replication_factor=1, assignments=None, configs=configs)

    policies.check_topic(topic("orders"))
    policies.check_topic(topic("tmp-1", **{"retention.ms": "1"}))
    with pytest.raises(PolicyViolation, match="need a retention"):
        policies.check_topic(topic("tmp-1"))
    policies.check_configs("BROKER", "1", {"unclean.leader.election.enable": "true"})
    with pytest.raises(PolicyViolation, match="lose records"):
        policies.check_configs("TOPIC", "t", {"unclean.leader.election.enable": "true"})
