from __future__ import annotations

import json

from millbeck.security.audit.events import TEXT_LENGTH_MAX, AuditKind, event_of, line_of


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
