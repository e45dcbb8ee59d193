"""A pipeline file: its name, the cluster, and the function that builds its topology.

``pipeline.py`` defines ``build(topology)`` and may set a dictionary ``PIPELINE`` of the settings below; a TOML file has
the same settings at its top and its topology as steps (`steps`). The command line overrides the file.
"""

from __future__ import annotations

import re
import runpy
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from millbeck.pipeline.errors import DefinitionError, TopologyError
from millbeck.pipeline.running.metrics_server import ANYWHERE, OFF, address_of
from millbeck.pipeline.running.steps import builder_of, check_steps
from millbeck.pipeline.running.triggers import parse_trigger
from millbeck.pipeline.short_errors import did_you_mean
from millbeck.pipeline.source_options import IDLE_AFTER
from millbeck.pipeline.topology.windows import length_ms

if TYPE_CHECKING:
    from millbeck.pipeline.topology.topology import Topology

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_STEP_KEYS: Final[tuple[str, ...]] = ("source", "steps", "sink")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    name: str
    bootstrap_servers: str = "localhost:9092"
    master: str = "local[*]"
    checkpoint: str | None = None
    """The checkpoint location, a directory or object store; None means the run's own directory."""
    delivery: str | None = None
    """``exactly_once`` or ``at_least_once``; by default exactly once, and in real-time mode at least once."""
    trigger: str = "1 second"
    """The trigger interval of batches, or ``real-time``, with the length of its batches if it is not a minute."""
    bad_records: str = "fail"
    late_records: str | None = None
    """The topic for records that came after their windows had closed; None means that they are only counted."""
    lateness: str = "0 seconds"
    idle_after: str | None = None
    """After this time without records of a source, event time goes on with the clock; None means that it waits."""
    group: str | None = None
    """The consumer group to commit offsets to, for monitoring of the lag; None means the pipeline's name."""
    metrics: str = ANYWHERE
    """The address of the metrics server, as host:port; "off" disables it."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the sources and the sink: ``kafka.*`` and others."""
    spark: Mapping[str, str] = field(default_factory=dict)

    @property
    def group_id(self) -> str:
        return self.group or self.name

    @property
    def source_options(self) -> dict[str, str]:
        idle = {} if self.idle_after is None else {IDLE_AFTER: f"{length_ms(self.idle_after)}ms"}
        return {**self.options, **idle}

    @property
    def client(self) -> dict[str, str]:
        """The settings of a client of the cluster, security included: the options with the prefix ``kafka.``."""
        named = {name.lower(): value for name, value in self.options.items()}
        own = {name.removeprefix("kafka."): value for name, value in named.items() if name.startswith("kafka.")}
        return {**own, "bootstrap.servers": self.bootstrap_servers}


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    path: Path
    settings: Settings
    build: Callable[[Topology], None]

    def with_settings(self, **given: Any) -> Definition:
        """A copy of this definition in which values that are not None override those of the file."""
        named = {name: value for name, value in given.items() if value is not None}
        return replace(self, settings=replace(self.settings, **named))


def load(path: Path) -> Definition:
    """Load a pipeline file. Raises `DefinitionError` naming the file and the problem."""
    if not path.is_file():
        raise DefinitionError(f"{path}: there is no such file")
    if path.suffix == ".toml":
        return _load_toml(path)
    if path.suffix == ".py":
        return _load_python(path)
    raise DefinitionError(f"{path}: not a pipeline; expected a .py file with build(topology), or a .toml file")


def _load_python(path: Path) -> Definition:
    try:
        defined = runpy.run_path(str(path))
    except Exception as error:
        raise DefinitionError(f"{path}: {type(error).__name__}: {error}") from error
    build = defined.get("build")
    if not callable(build):
        raise DefinitionError(f"{path}: it defines no function build(topology)")
    given = defined.get("PIPELINE", {})
    if not isinstance(given, dict):
        raise DefinitionError(f"{path}: PIPELINE must be a dictionary of settings, not {type(given).__name__}")
    return Definition(path=path, settings=_settings(path, given), build=build)


def _load_toml(path: Path) -> Definition:
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{path}: {error}") from error
    steps = {name: given.pop(name) for name in _STEP_KEYS if name in given}
    try:
        check_steps(steps)
    except DefinitionError as error:
        raise DefinitionError(f"{path}: {error}") from error
    return Definition(path=path, settings=_settings(path, given), build=builder_of(steps, path))


def _settings(path: Path, given: Mapping[str, Any]) -> Settings:
    values = {str(name).replace("-", "_"): value for name, value in given.items()}
    values.setdefault("name", path.stem)
    known = Settings.__dataclass_fields__
    for name, value in values.items():
        if name not in known:
            raise DefinitionError(
                f"{path}: unknown setting {name!r}{did_you_mean(name, known)}; the settings are {', '.join(known)}"
            )
        wanted = dict if name in ("options", "spark") else str
        if not isinstance(value, wanted):
            raise DefinitionError(f"{path}: {name} is a {'table' if wanted is dict else 'text'}, not {value!r}")
    try:
        parse_trigger(values.get("trigger", "1 second"))
    except DefinitionError as error:
        raise DefinitionError(f"{path}: {error}") from error
    if "idle_after" in values:
        try:
            length_ms(values["idle_after"])
        except TopologyError as error:
            raise DefinitionError(f"{path}: idle_after: {error}") from error
    for name in ("options", "spark"):
        if name in values:
            values[name] = {key: str(value) for key, value in values[name].items()}
    if not _NAME.fullmatch(values["name"]):
        raise DefinitionError(
            f"{path}: {values['name']!r} is not a valid name: letters, digits, '.', '_' and '-', at most 100"
        )
    if values.get("metrics", OFF) != OFF:
        try:
            address_of(values["metrics"])
        except DefinitionError as error:
            raise DefinitionError(f"{path}: {error}") from error
    return Settings(**values)
