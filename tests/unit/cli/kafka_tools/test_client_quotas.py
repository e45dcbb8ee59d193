"""Client quotas as ``kafka-configs`` prints them; the flags are tried in tests/unit/cli/commands/test_config.py."""

from __future__ import annotations

import pytest

from millbeck.cli.kafka_tools.client_quotas import java_double, quota_line

DOUBLES = {
    0.0: "0.0",
    5.0: "5.0",
    12.5: "12.5",
    1024.0: "1024.0",
    9999999.0: "9999999.0",
    1e7: "1.0E7",
    10485760.0: "1.048576E7",
    1.5e21: "1.5E21",
    0.001: "0.001",
    0.0005: "5.0E-4",
    -2e7: "-2.0E7",
}


@pytest.mark.parametrize(("value", "text"), DOUBLES.items())
def test_numbers_are_those_of_java(value: float, text: str) -> None:
    assert java_double(value) == text


def test_a_line_names_users_before_client_ids_and_defaults_as_such() -> None:
    entity = (("client-id", None), ("user", "alice"))
    assert quota_line(entity, {"producer_byte_rate": 1024.0, "request_percentage": 50.0}) == (
        "Quota configs for user-principal 'alice', the default client-id are producer_byte_rate=1024.0, "
        "request_percentage=50.0"
    )
    assert quota_line((("ip", "::1"),), {"connection_creation_rate": 5.0}) == (
        "Quota configs for ip '::1' are connection_creation_rate=5.0"
    )
