"""What requests about connectors mean: from the state of the cluster to an answer and the records that make it true.

Nothing is done here: a `Decision` says what is to be written. The state changes when the records are read back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from millbeck.pipeline.connect.config.validation import DEFAULT_CONVERTERS, Validation, validated
from millbeck.pipeline.connect.connectors.declared import found_connector
from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.rest.answers import Decision, RestError, bad_request, not_found
from millbeck.pipeline.connect.state import configs as config_records
from millbeck.pipeline.connect.state import status as status_records
from millbeck.pipeline.connect.state.configs import ConfigState, RestartRequest, TargetState, TaskId
from millbeck.pipeline.connect.state.offsets import OffsetState
from millbeck.pipeline.connect.state.status import State, Status, StatusState

_INVALID: Final = "Connector configuration is invalid and contains the following {count} error(s):\n{errors}\n"
_WHERE: Final = (
    "You can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
)


@dataclass(slots=True, kw_only=True)
class Cluster:
    """What a worker knows of the cluster."""

    configs: ConfigState = field(default_factory=ConfigState)
    statuses: StatusState = field(default_factory=StatusState)
    offsets: OffsetState = field(default_factory=OffsetState)
    converters: Mapping[str, str] = field(default_factory=lambda: DEFAULT_CONVERTERS)
    """The worker's converters, which connectors have unless they name others."""


class Herder:
    """Answers requests about connectors. Raises `RestError` for what is answered with an error."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def _configs(self) -> ConfigState:
        return self._cluster.configs

    def names(self) -> list[str]:
        return list(self._configs.connectors)

    def settings(self, name: str) -> dict[str, str]:
        found = self._configs.connectors.get(name)
        if found is None:
            raise not_found(f"Connector {name} not found")
        return found

    def described(self, name: str) -> dict[str, Any]:
        return self._description(name, self.settings(name))

    def _description(self, name: str, settings: Mapping[str, str]) -> dict[str, Any]:
        return {
            "name": name,
            "config": dict(settings),
            "tasks": [{"connector": name, "task": task.task} for task in self._configs.tasks_of(name)],
            "type": _type(settings),
        }

    def create(self, body: Any) -> Decision:
        """``POST /connectors``."""
        if not isinstance(body, dict):
            raise bad_request("a JSON object with name and config is expected")
        unknown = sorted(body.keys() - {"name", "config", "initial_state"})
        if unknown:
            raise bad_request(f'Unrecognized field "{unknown[0]}": there are name, config and initial_state')
        given = body.get("config")
        if not isinstance(given, dict):
            raise bad_request("config: a JSON object with the connector's settings is expected")
        state = _initial_state(body.get("initial_state"))
        name = str(body.get("name") or "").strip()
        settings = _named(name, _texts(given))
        self._check(settings)
        if name in self._configs.connectors:
            raise RestError(409, f"Connector {name} already exists")
        kept = {setting: text for setting, text in settings.items() if text is not None}
        return Decision(
            status=201,
            body=self._description(name, kept) | {"tasks": []},
            location=f"/connectors/{name}",
            configs=tuple(config_records.connector_records(name, kept, state)),
        )

    def put(self, name: str, body: Any) -> Decision:
        """``PUT /connectors/{name}/config``: create or replace."""
        if not isinstance(body, dict):
            raise bad_request("a JSON object with the connector's settings is expected")
        settings = _named(name, _texts(body))
        self._check(settings)
        return self._replaced(name, {setting: text for setting, text in settings.items() if text is not None})

    def patch(self, name: str, body: Any) -> Decision:
        """``PATCH /connectors/{name}/config``: change some settings; null removes one."""
        if not isinstance(body, dict):
            raise bad_request("a JSON object with the settings to change is expected")
        changed: dict[str, str | None] = {**self.settings(name), **_texts(body)}
        settings = {setting: text for setting, text in changed.items() if text is not None}
        self._check(_named(name, dict(settings)))
        return self._replaced(name, settings)

    def _replaced(self, name: str, settings: dict[str, str]) -> Decision:
        is_new = name not in self._configs.connectors
        return Decision(
            status=201 if is_new else 200,
            body=self._description(name, settings),
            location=f"/connectors/{name}" if is_new else None,
            configs=tuple(config_records.connector_records(name, settings)),
        )

    def _check(self, settings: Mapping[str, str | None]) -> Validation:
        try:
            found = validated(settings, self._cluster.converters)
        except ConfigError as error:
            raise bad_request(str(error)) from None
        if found.errors:
            text = _INVALID.format(count=len(found.errors), errors="\n".join(found.errors))
            raise bad_request(text + _WHERE)
        return found

    def delete(self, name: str) -> Decision:
        self.settings(name)
        return Decision(status=204, configs=tuple(config_records.deletion_records(name)))

    def set_target_state(self, name: str, state: TargetState) -> Decision:
        """Pause, resume or stop; a stopped connector has no tasks."""
        if name not in self._configs.connectors:
            raise not_found(f"Unknown connector {name}")
        records = [config_records.target_state_record(name, state)]
        if state is TargetState.STOPPED:
            records = [*config_records.task_records(name, []), *records]
        return Decision(status=204 if state is TargetState.STOPPED else 202, configs=tuple(records))

    def status(self, name: str) -> dict[str, Any]:
        found = self._cluster.statuses.connectors.get(name)
        if found is None:
            raise not_found(f"No status found for connector {name}")
        tasks = self._cluster.statuses.tasks_of(name).items()
        return {
            "name": name,
            "connector": _status(found),
            "tasks": [{"id": task, **_status(each)} for task, each in tasks],
            "type": _type(self._configs.connectors.get(name, {})),
        }

    def task_status(self, name: str, task: int) -> dict[str, Any]:
        found = self._cluster.statuses.tasks.get(TaskId(name, task))
        if found is None:
            raise not_found(f"No status found for task {name}-{task}")
        return {"id": task, **_status(found)}

    def tasks(self, name: str) -> list[dict[str, Any]]:
        self.settings(name)
        return [
            {"id": {"connector": name, "task": task.task}, "config": self._configs.tasks[task]}
            for task in self._configs.tasks_of(name)
        ]

    def restart(self, request: RestartRequest) -> Decision:
        """``POST /connectors/{name}/restart``. Without options it is the connector alone, and has no body."""
        name = request.connector
        if name not in self._configs.connectors:
            raise not_found(f"Unknown connector: {name}")
        records = (config_records.restart_record(request),)
        if not request.only_failed and not request.include_tasks:
            return Decision(status=204, configs=records)
        if name not in self._cluster.statuses.connectors:
            raise not_found(f"Status for connector {name} not found")
        return Decision(status=202, body=self._restarting(request), configs=records)

    def _restarting(self, request: RestartRequest) -> dict[str, Any]:
        """The status as it will be: what is restarted is RESTARTING."""
        found = self.status(request.connector)
        if _is_restarted(found["connector"], request):
            found["connector"]["state"] = State.RESTARTING.value
        for task in found["tasks"]:
            if request.include_tasks and _is_restarted(task, request):
                task["state"] = State.RESTARTING.value
        return found

    def restart_task(self, name: str, task: int) -> Decision:
        if TaskId(name, task) not in self._configs.tasks_of(name):
            if name not in self._configs.connectors:
                raise not_found(f"Unknown connector: {name}")
            raise not_found(f"Unknown task: {name}-{task}")
        return Decision(status=204, restarted_task=TaskId(name, task))

    def topics(self, name: str) -> dict[str, Any]:
        return {name: {"topics": list(self._cluster.statuses.topics.get(name, {}))}}

    def forget_topics(self, name: str) -> Decision:
        used = self._cluster.statuses.topics.get(name, {})
        records = tuple(status_records.forgotten_topic_record(topic, name) for topic in used)
        return Decision(status=202, statuses=records)


def _named(name: str, settings: dict[str, str | None]) -> dict[str, str | None]:
    """The settings with the connector's name among them."""
    inner = settings.setdefault("name", name)
    if inner != name:
        raise bad_request(f"Connector name configuration ({inner}) doesn't match connector name in the URL ({name})")
    return settings


def _texts(given: dict[str, Any]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name, value in given.items():
        if isinstance(value, (dict, list)):
            raise bad_request(f"{name}: a setting's value is a text")
        if isinstance(value, bool):
            value = "true" if value else "false"
        found[name] = None if value is None else str(value)
    return found


def _initial_state(given: Any) -> TargetState | None:
    if given is None:
        return None
    try:
        word = str(given).upper()
        return TargetState("STARTED" if word == "RUNNING" else word)
    except ValueError:
        raise bad_request(f"initial_state: {str(given)[:100]} is not one of RUNNING, PAUSED and STOPPED") from None


def _type(settings: Mapping[str, str]) -> str:
    known = found_connector(settings.get("connector.class", ""))
    return "unknown" if known is None else known.kind.value


def _status(found: Status) -> dict[str, Any]:
    shown = {"state": found.state.value, "worker_id": found.worker_id}
    if found.trace is not None:
        shown["trace"] = found.trace
    return shown if found.version is None else shown | {"version": found.version}


def _is_restarted(status: Mapping[str, Any], request: RestartRequest) -> bool:
    return not request.only_failed or status["state"] == State.FAILED.value
