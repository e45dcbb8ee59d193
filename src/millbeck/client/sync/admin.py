"""The synchronous `Admin`: every method of `millbeck.client.Admin`, with the same arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from millbeck.client.admin import Admin as AsyncAdmin
from millbeck.client.admin.client import AdminConfig
from millbeck.client.config import Value
from millbeck.client.metrics.registry import MetricName
from millbeck.client.sync.background import Background
from millbeck.kernel.environment import Environment


class Admin(Background):
    """The synchronous admin client; it can be used from several threads."""

    def __init__(
        self,
        settings: Mapping[str, object] | AdminConfig | None = None,
        *,
        environment: Environment | None = None,
        **named: Value,
    ) -> None:
        self._admin = AsyncAdmin(settings, environment=environment, **named)
        super().__init__()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The blocking form of the method with this name."""
        method = getattr(AsyncAdmin, name)
        if name.startswith("_") or not inspect.iscoroutinefunction(method):
            raise AttributeError(f"Admin has no method {name}")

        @functools.wraps(method)
        def call(*arguments: Any, **options: Any) -> Any:
            return self._call(lambda: method(self._admin, *arguments, **options))

        return call

    def metrics(self) -> dict[MetricName, float]:
        return self._call_plain(self._admin.metrics)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(AsyncAdmin) if not name.startswith("_"))})

    def _close_at_exit(self) -> None:
        self.close()

    def close(self) -> None:
        self._close(self._admin.close)
