"""A log message is one line, whatever a client calls its things."""

from __future__ import annotations

import io
import logging
import sys

import pytest

from millbeck.host.log_lines import LineFormatter, log_to


def formatted(message: str, *arguments: object, is_failed: bool = False) -> str:
    failure = (ValueError, ValueError("wrong"), None) if is_failed else None
    record = logging.LogRecord("kafka.authorizer.logger", logging.INFO, "", 0, message, arguments, failure)
    return LineFormatter("%(levelname)s %(message)s").format(record)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("g\nINFO Principal = User:eve is Allowed", r"g\nINFO Principal = User:eve is Allowed"),
        ("\x1b[2Jg\r", r"\x1b[2Jg\r"),
        ("a\u2028b\x85c\x00", r"a\u2028b\x85c\x00"),
        ("Zoë 日本 🦊", "Zoë 日本 🦊"),
    ],
)
def test_names_begin_no_line(name: str, shown: str) -> None:
    assert formatted("Denied on Group:LITERAL:%s", name) == f"INFO Denied on Group:LITERAL:{shown}"


def test_a_traceback_keeps_its_lines() -> None:
    assert formatted("failed", is_failed=True) == "INFO failed\nValueError: wrong"


def test_logging_that_is_configured_already_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    stream = io.StringIO()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", logging.WARNING)
    log_to(stream, logging.INFO, "%(message)s")
    log_to(sys.stderr, logging.ERROR)
    logging.getLogger("millbeck.test").info("a\nb")
    assert stream.getvalue() == "a\\nb\n"
