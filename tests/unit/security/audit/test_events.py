from __future__ import annotations

import json

from millbeck.security.audit.events import LINE_LENGTH_MAX, TEXT_LENGTH_MAX, AuditKind, event_of, line_of


def test_a_line_is_json_on_one_line_whatever_a_client_sent() -> None:
    event = event_of(AuditKind.DENIED, principal='User:a\nb\x1b[2J"', host="10.0.0.7", rule="")
    line = line_of(event, wall_ms=1_700_000_000_123, node_id=3, more={"repeated": 5})
    assert line.isprintable()
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.123Z",
        "node": 3,
        "event": "denied",
        "principal": 'User:a\nb\x1b[2J"',
        "host": "10.0.0.7",
        "repeated": 5,
    }


def test_long_texts_are_cut() -> None:
    ((_, text),) = event_of(AuditKind.LOGIN_FAILED, user="x" * 100_000).subject
    assert len(text) == TEXT_LENGTH_MAX


def test_details_of_a_long_line_are_cut_and_short_ones_are_not() -> None:
    for length in (10, 60_000, 70_000, 10_000_000):
        event = event_of(AuditKind.CHANGED, {"before": None, "after": {"x": "y" * length}}, name="topic:t:x")
        line = line_of(event, wall_ms=0, node_id=1)
        found = json.loads(line)
        assert (len(line) <= LINE_LENGTH_MAX, found["name"]) == (True, "topic:t:x")
        assert found.get("cut", False) == (length > 65_000)
        assert found["after"] == ('{"x":"' + "y" * 506 if length > 65_000 else {"x": "y" * length})


def test_a_line_has_its_maximum_length_whatever_a_client_sent() -> None:
    names = ("principal", "user", "host", "listener", "mechanism", "session", "reason", "api", "kind", "name")
    event = event_of(
        AuditKind.CHANGED, {"before": "𝄞" * 100_000, "after": "\0" * 100_000}, **dict.fromkeys(names, "𝄞" * 600)
    )
    assert len(line_of(event, wall_ms=0, node_id=1)) <= LINE_LENGTH_MAX


def test_a_detail_of_a_type_that_json_lacks_is_a_text() -> None:
    event = event_of(AuditKind.CHANGED, {"after": {"id": b"x"}}, name="t")
    assert json.loads(line_of(event, wall_ms=0, node_id=1))["after"] == {"id": "b'x'"}
