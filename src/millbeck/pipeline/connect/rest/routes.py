"""From a request to what it means: the paths and methods of Kafka Connect's REST interface.

`Routes.respond` does nothing by itself: it returns a `Decision`, or for the positions of a sink a `GroupRead`, which is
answered once the group's committed offsets are there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from millbeck import __version__
from millbeck.pipeline.connect.config.connector_options import SINK_OPTIONS, SOURCE_OPTIONS, common_options
from millbeck.pipeline.connect.config.validation import CONVERTERS, Validation, validated
from millbeck.pipeline.connect.connectors.declared import (
    CONNECTORS,
    ConnectorKind,
    SettingProblem,
    connector_of,
    found_connector,
    installed_connectors,
)
from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.plugins import BUILT_IN, known_plugins
from millbeck.pipeline.connect.rest.answers import Decision, GroupOffset, Request, RestError, bad_request, not_found
from millbeck.pipeline.connect.rest.herder import Cluster, Herder
from millbeck.pipeline.connect.rest.loggers import Loggers
from millbeck.pipeline.connect.rest.offset_requests import OffsetRequests
from millbeck.pipeline.connect.state.configs import RestartRequest, TargetState

_HEALTHY: Final = {
    "status": "healthy",
    "message": "Worker has completed startup and is ready to handle requests.",
}


@dataclass(frozen=True, slots=True)
class GroupRead:
    """The offsets of a consumer group are needed for the answer."""

    group: str
    answered: Callable[[Iterable[GroupOffset]], Decision]


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked configuration, which the connector itself is still to be asked about."""

    settings: Mapping[str, str]
    validation: Validation

    def answered(self, problems: Iterable[SettingProblem]) -> Decision:
        for setting, problem in problems:
            value = self.validation.entry(setting).value
            value.errors.append(f"Invalid value {value.value} for configuration {setting}: {problem}")
        return Decision(body=self.validation.description())


Outcome = Decision | GroupRead | Checked
Handler = Callable[[Request, Mapping[str, str]], Outcome]


class Routes:
    """Kafka Connect's REST interface on the state of a cluster."""

    def __init__(self, cluster: Cluster, *, cluster_id: str, loggers: Loggers | None = None) -> None:
        self._cluster_id = cluster_id
        self._loggers = loggers or Loggers()
        self._cluster = cluster
        self._herder = Herder(cluster)
        self._offsets = OffsetRequests(cluster)
        self._routes: list[tuple[re.Pattern[str], dict[str, Handler]]] = [
            (_compiled(path), handlers) for path, handlers in self._handlers().items()
        ]

    def respond(self, request: Request) -> Outcome:
        """Never raises: what is wrong with a request is its answer."""
        try:
            return self._dispatch(request)
        except RestError as error:
            return error.decision()

    def _dispatch(self, request: Request) -> Outcome:
        path = request.path.rstrip("/") or "/"
        for pattern, handlers in self._routes:
            match = pattern.fullmatch(path)
            if match is None:
                continue
            handler = handlers.get(request.method)
            if handler is None:
                raise RestError(405, "HTTP 405 Method Not Allowed")
            return handler(request, {name: unquote(text) for name, text in match.groupdict().items()})
        raise not_found("HTTP 404 Not Found")

    def _handlers(self) -> dict[str, dict[str, Handler]]:
        herder = self._herder
        return {
            "/": {"GET": lambda request, found: Decision(body=self._root())},
            "/health": {"GET": lambda request, found: Decision(body=_HEALTHY)},
            "/connector-plugins": {"GET": lambda request, found: Decision(body=_plugins(request))},
            "/connector-plugins/{name}/config": {
                "GET": lambda request, found: Decision(body=self._plugin_settings(found["name"]))
            },
            "/connector-plugins/{name}/config/validate": {
                "PUT": lambda request, found: self._validated(found["name"], request.body)
            },
            "/connectors": {
                "GET": lambda request, found: Decision(body=self._listed(request)),
                "POST": lambda request, found: herder.create(request.body),
            },
            "/connectors/{name}": {
                "GET": lambda request, found: Decision(body=herder.described(found["name"])),
                "DELETE": lambda request, found: herder.delete(found["name"]),
            },
            "/connectors/{name}/config": {
                "GET": lambda request, found: Decision(body=herder.settings(found["name"])),
                "PUT": lambda request, found: herder.put(found["name"], request.body),
                "PATCH": lambda request, found: herder.patch(found["name"], request.body),
            },
            "/connectors/{name}/status": {"GET": lambda request, found: Decision(body=herder.status(found["name"]))},
            "/connectors/{name}/restart": {"POST": self._restart},
            "/connectors/{name}/pause": {"PUT": self._to(TargetState.PAUSED)},
            "/connectors/{name}/resume": {"PUT": self._to(TargetState.STARTED)},
            "/connectors/{name}/stop": {"PUT": self._to(TargetState.STOPPED)},
            "/connectors/{name}/tasks": {
                "GET": lambda request, found: Decision(body=herder.tasks(found["name"])),
                "POST": _internal,
            },
            "/connectors/{name}/fence": {"PUT": _internal},
            "/connectors/{name}/tasks/{task}/status": {
                "GET": lambda request, found: Decision(body=herder.task_status(found["name"], int(found["task"])))
            },
            "/connectors/{name}/tasks/{task}/restart": {
                "POST": lambda request, found: herder.restart_task(found["name"], int(found["task"]))
            },
            "/connectors/{name}/topics": {"GET": lambda request, found: Decision(body=herder.topics(found["name"]))},
            "/connectors/{name}/topics/reset": {"PUT": lambda request, found: herder.forget_topics(found["name"])},
            "/admin/loggers": {"GET": lambda request, found: Decision(body=self._loggers.listed())},
            "/admin/loggers/{name}": {
                "GET": lambda request, found: Decision(body=self._loggers.one(found["name"])),
                "PUT": lambda request, found: self._loggers.put(found["name"], request),
            },
            "/connectors/{name}/offsets": {
                "GET": lambda request, found: self._read_offsets(found["name"]),
                "PATCH": lambda request, found: self._offsets.alter(found["name"], request.body),
                "DELETE": lambda request, found: self._offsets.reset(found["name"]),
            },
        }

    def _root(self) -> dict[str, str]:
        return {"version": __version__, "commit": "unknown", "kafka_cluster_id": self._cluster_id}

    def _to(self, state: TargetState) -> Handler:
        return lambda request, found: self._herder.set_target_state(found["name"], state)

    def _restart(self, request: Request, found: Mapping[str, str]) -> Decision:
        wanted = RestartRequest(
            found["name"], only_failed=request.flag("onlyFailed"), include_tasks=request.flag("includeTasks")
        )
        return self._herder.restart(wanted)

    def _read_offsets(self, name: str) -> Outcome:
        if self._offsets.kind(name) is ConnectorKind.SOURCE:
            return Decision(body=self._offsets.of_source(name))
        return GroupRead(self._offsets.group(name), lambda committed: Decision(body=self._offsets.of_sink(committed)))

    def _listed(self, request: Request) -> Any:
        """The names, or by ``expand`` an object for each."""
        expanded = request.query.get("expand", ())
        names = self._herder.names()
        if not expanded:
            return names
        found: dict[str, dict[str, Any]] = {name: {} for name in names}
        for name in names:
            if "info" in expanded:
                found[name]["info"] = self._herder.described(name)
            if "status" in expanded and name in self._cluster.statuses.connectors:
                found[name]["status"] = self._herder.status(name)
        return found

    def _plugin_settings(self, name: str) -> list[dict[str, Any]]:
        connector = found_connector(name)
        if connector is not None:
            versions: dict[str, str | None] = {"connector.class": connector.version}
            options = SINK_OPTIONS if connector.kind is ConnectorKind.SINK else SOURCE_OPTIONS
            common = common_options(versions, dict.fromkeys(CONVERTERS)).joined(options)
            return [key.description() for key in connector.config_def.joined(common)]
        plugin = next(
            (found for plugin in BUILT_IN if (found := known_plugins(plugin.kinds[0]).get(name)) is not None), None
        )
        if plugin is None:
            raise not_found(f"Unknown plugin {name}.")
        return [key.description() for key in plugin.config_def]

    def _validated(self, name: str, body: Any) -> Outcome:
        if not isinstance(body, dict):
            raise bad_request("a JSON object with the connector's settings is expected")
        settings = {setting: None if text is None else str(text) for setting, text in body.items()}
        given = settings.get("connector.class")
        try:
            if given is not None and connector_of(given) != found_connector(name):
                raise bad_request(f"Included connector type {given} does not match request type {name}")
            found = validated(settings, self._cluster.converters)
        except ConfigError as error:
            raise bad_request(str(error)) from None
        if found.errors:
            return Decision(body=found.description())
        return Checked({setting: text for setting, text in settings.items() if text is not None}, found)


def _internal(request: Request, found: Mapping[str, str]) -> Decision:
    """What Kafka's workers ask each other (KIP-507). Here the leader writes tasks and their owner fences them: nobody
    has the key to sign such a request."""
    raise bad_request("Internal request missing required signature")


def _compiled(path: str) -> re.Pattern[str]:
    """A path's pattern, before percent signs are decoded: names may have slashes inside. Tasks are numbers."""
    pattern = path.replace("{name}", "(?P<name>[^/]+)").replace("{task}", r"(?P<task>\d{1,6})")
    return re.compile(pattern, re.ASCII)


def _plugins(request: Request) -> list[dict[str, str]]:
    """Connectors; with ``connectorsOnly=false`` all classes, each for all that it can be."""
    found = [
        {"class": each.name, "type": each.kind.value, "version": each.version}
        for each in sorted([*CONNECTORS, *installed_connectors()], key=lambda each: (each.kind.value, each.name))
    ]
    if request.query.get("connectorsOnly", ("true",))[-1].strip().lower() != "false":
        return found
    others = sorted((kind.value, plugin.name) for plugin in BUILT_IN for kind in plugin.kinds)
    return [*found, *({"class": name, "type": kind, "version": __version__} for kind, name in others)]
