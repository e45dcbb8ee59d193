"""``/admin/loggers``: the log levels of a worker, with Java's names of levels.

Loggers are those of Python: ``root``, ``millbeck``, ``millbeck.pipeline.connect.worker.runner`` and so on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from millbeck.pipeline.connect.rest.answers import Decision, Request, bad_request, not_found
from millbeck.pipeline.connect.state.configs import logger_record

ROOT: Final = "root"
_PACKAGE: Final = "millbeck"
_OFF: Final = logging.CRITICAL + 10
_TRACE: Final = 5
_LEVELS: Final = {
    "OFF": _OFF,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": _TRACE,
    "ALL": 1,
}


@dataclass(slots=True)
class Loggers:
    """Answers requests about loggers, and sets their levels. ``wall_ms`` is for the time of a change."""

    wall_ms: Callable[[], int] = lambda: 0
    _modified: dict[str, int] = field(default_factory=dict)

    def listed(self) -> dict[str, Any]:
        return {name: self._described(name) for name in self._names()}

    def one(self, name: str) -> dict[str, Any]:
        if name not in self._names():
            raise not_found(f"Logger {name} not found.")
        return self._described(name)

    def put(self, name: str, request: Request) -> Decision:
        """Set a level here, or with ``scope=cluster`` on all workers."""
        level = request.body.get("level") if isinstance(request.body, dict) else None
        if not isinstance(level, str):
            raise bad_request("Desired 'level' parameter was not specified in request.")
        if level.upper() not in _LEVELS:
            raise not_found(f"Invalid log level '{level[:100]}'.")
        if request.query.get("scope", ("worker",))[-1].lower() == "cluster":
            return Decision(status=204, configs=(logger_record(name, level.upper()),))
        return Decision(body=self.apply(name, level))

    def apply(self, name: str, level: str) -> list[str]:
        """Set the level of a logger and of those below it; returns their names. An unknown level has no effect."""
        number = _LEVELS.get(level.upper())
        if number is None:
            return []
        changed = [each for each in self._names() if name == ROOT or each == name or each.startswith(f"{name}.")]
        changed = changed or [name]
        for each in changed:
            logging.getLogger(None if each == ROOT else each).setLevel(number)
            self._modified[each] = self.wall_ms()
        return changed

    @staticmethod
    def _names() -> list[str]:
        known = logging.root.manager.loggerDict
        return [*sorted(name for name in known if name == _PACKAGE or name.startswith(f"{_PACKAGE}.")), ROOT]

    def _described(self, name: str) -> dict[str, Any]:
        number = logging.getLogger(None if name == ROOT else name).getEffectiveLevel()
        level = next((word for word, each in _LEVELS.items() if each <= number), "ALL")
        return {"level": level, "last_modified": self._modified.get(name)}
