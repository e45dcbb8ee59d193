"""The law of layers: imports point down, and only ``host`` touches the real machine.

Changing one of the tables below, or the list of pure packages in conftest, changes the architecture; that needs a
record in docs/adr.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.tidy.conftest import Module

ROOT = Path(__file__).resolve().parents[2]
LAYERS = {
    "cli": 9,
    "simulation": 8,
    "testing": 8,
    "pipeline": 7,
    "registry": 6,
    "server": 5,
    "controller": 4,
    "coordinator": 4,
    "replication": 4,
    "raft": 3,
    "metadata": 3,
    "storage": 3,
    "client": 3,
    "security": 2,
    "wire": 1,
    "records": 1,
    "host": 1,
    "kernel": 0,
    "compiled": 0,
}
"""A package imports only from rows below its own; packages of one row do not import each other."""

ROOMS = {
    "node": 11,
    "broker_role": 10,
    "controller_role": 10,
    "metrics": 9,
    "broker": 8,
    "local": 8,
    "audit": 9,
    "requests": 7,
    "broker_lifecycle": 6,
    "share": 6,
    "cleaner": 5,
    "coordinators": 5,
    "fetch": 5,
    "metadata": 5,
    "replicas": 4,
    "schemas": 4,
    "topic_writer": 4,
    "transactions": 4,
    "network": 3,
    "context": 2,
    "quotas": 2,
    "config": 1,
    "local_topics": 1,
    "seams": 1,
    "loop": 0,
}
"""The same inside ``server``: its packages and the modules at its top."""

CONTEXTS = ("millbeck.server.broker", "millbeck.server.node")
"""What handlers and drivers are given to reach the node's other parts: any room may import it for types."""

REAL_MACHINE = (
    "fcntl",
    "mmap",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "resource",
    "secrets",
    "select",
    "selectors",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uuid",
)
"""Clocks, randomness, files, network and threads: what the code gets from its environment instead."""

IMPURE = (*REAL_MACHINE, "asyncio", "concurrent", "signal", "ssl")
"""What a pure package does not import at all, except for types."""

HARMLESS = {
    "os": ("path", "fspath", "strerror"),
    "random": ("Random",),  # seeded by whoever makes one
    "socket": ("gaierror",),  # the error of a name that does not resolve
}
"""Attributes of the real machine's modules that do not touch it; packages that are not pure may use these."""

ON_THE_REAL_MACHINE = {
    "millbeck.host": "implements the environment",
    "millbeck.cli": "commands run on the user's machine",
    "millbeck.testing": "fixtures start real nodes",
    "millbeck.simulation.mutants": "mutants run on processes of this machine",
    "millbeck.simulation.runs": "campaigns run on processes of this machine",
    "millbeck.client.schemas.caches": "used by any thread, on Spark's workers too, where there is no environment",
    "millbeck.client.schemas.transport": "asks a registry from any thread, on Spark's workers too",
    "millbeck.client.schemas.waiting": "waits on threads, on Spark's workers too",
    "millbeck.client.schemas.known_protos": "reads files of an installed package",
    "millbeck.client.schemas.protoc": "runs protoc on files of its own",
    "millbeck.pipeline.connect.connectors.objects.clock": "completes and names files by the wall clock where asked to",
    "millbeck.pipeline.connect.worker.serving": "asks how many cores there are",
    "millbeck.pipeline.connect.connectors.files": "reads and writes files of the machine that tasks run on",
    "millbeck.pipeline.connect.connectors.tables.file_names": "names of data files that no two attempts share",
    "millbeck.pipeline.formats.schema_files": "reads schemas from the user's files and compiles them",
    "millbeck.pipeline.connect.postgres.connection": "waits for an answer of the server",
    "millbeck.pipeline.connect.postgres.connector": "owns a replication stream, and says when it was read",
    "millbeck.pipeline.connect.postgres.snapshot": "says when a snapshot was taken",
    "millbeck.pipeline.connect.postgres.snapshotting": "says when rows were read",
    "millbeck.pipeline.connect.postgres.spool": "keeps large transactions in files",
    "millbeck.pipeline.connect.postgres.stream": "reads a replication stream on a thread",
    "millbeck.pipeline.java": "finds the machine's Java",
    "millbeck.pipeline.java_settings": "reads certificates and stores that the settings name",
    "millbeck.pipeline.preloading": "loads modules on a thread while Java starts",
    "millbeck.pipeline.running": "runs pipelines from files of the user's machine",
    "millbeck.pipeline.session": "tells Spark in its environment which Java and Python to start",
    "millbeck.pipeline.spark_output": "stands between Spark's processes and the terminal",
    "millbeck.pipeline.table_copy": "has copies of tables in files for Spark's workers",
    "millbeck.compiled": "looks at the package's own files when it is loaded",
}
EXCEPTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "millbeck.records.native": (
        ("os",),
        "chooses at load time between compiled and plain kernels, which are equal; nothing depends on it later",
    ),
    "millbeck.simulation.environment.strict": (
        ("os", "random", "secrets", "socket", "threading", "time", "uuid"),
        "takes the real machine away while a simulation runs, so it has to know it",
    ),
}


def test_every_package_has_a_row(source: list[Module]) -> None:
    assert sorted({module.package for module in source} - {""}) == sorted(LAYERS)


def test_imports_point_down(source: list[Module]) -> None:
    violations = [line for module in source for line in _upward_imports(module)]
    assert not violations, "\n".join(violations)


def test_every_part_of_server_has_a_row(source: list[Module]) -> None:
    parts = {_room(module) for module in source} - {""}
    assert sorted(parts) == sorted(ROOMS)


def test_the_architecture_page_has_both_tables() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = [
        line.split("|")[1:-1] for line in page.splitlines() if re.match(r"\| \d+ \|", line) and line.count("|") == 6
    ]
    assert _rows_of((row[0], row[1]) for row in rows) == LAYERS
    assert _rows_of((row[3], row[4]) for row in rows) == ROOMS


def _rows_of(cells: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Row numbers by package. A cell of two rows separates the packages of the rows with semicolons."""
    found: dict[str, int] = {}
    for numbers, packages in cells:
        parts = packages.split(";") if "," in numbers else [packages]
        for number, part in zip(numbers.split(","), parts, strict=True):
            named = re.sub(r"\(.*?\)", "", part).split(":")[0]
            found.update({name: int(number) for name in re.findall(r"`(\w+)`", named)})
    return found


def test_imports_inside_server_point_down(source: list[Module]) -> None:
    violations = [line for module in source for line in _upward_imports_inside_server(module)]
    assert not violations, "\n".join(violations)


def test_pure_packages_import_no_machine(source: list[Module]) -> None:
    violations = [line for module in source if module.is_pure for line in _impure_imports(module)]
    assert not violations, "\n".join(violations)


def test_only_host_touches_the_real_machine(source: list[Module]) -> None:
    free = [module for module in source if module.is_pure or _is_on_the_real_machine(module)]
    violations = [line for module in source if module not in free for line in _touches_of_the_machine(module)]
    assert not violations, "\n".join(violations)


def test_files_are_opened_by_the_environment(source: list[Module]) -> None:
    violations = [
        f"{module.shown}:{line} calls open(): use the environment's files"
        for module in source
        if not _is_on_the_real_machine(module)
        for line in _calls_of(module.tree, "open")
    ]
    assert not violations, "\n".join(violations)


def test_nobody_asks_a_calendar_for_the_time(source: list[Module]) -> None:
    violations: list[str] = []
    for module in source:
        if _is_on_the_real_machine(module):
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
                owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
                if owner in ("datetime", "date") and node.attr in ("now", "utcnow", "today"):
                    violations.append(f"{module.shown}:{node.lineno} calls {owner}.{node.attr}")
    assert not violations, "\n".join(violations)


def test_pure_packages_decide_nothing_by_address(source: list[Module]) -> None:
    """``id()`` and ``hash()`` differ from run to run."""
    violations: list[str] = []
    for module in source:
        if not module.is_pure:
            continue
        inside_hash = {
            node.lineno
            for function in ast.walk(module.tree)
            if isinstance(function, ast.FunctionDef) and function.name == "__hash__"
            for node in ast.walk(function)
            if isinstance(node, ast.Call)
        }
        for name in ("id", "hash"):
            lines = [line for line in _calls_of(module.tree, name) if line not in inside_hash]
            violations.extend(f"{module.shown}:{line} calls {name}()" for line in lines)
    assert not violations, "\n".join(violations)


def test_every_exception_is_still_needed(source: list[Module]) -> None:
    by_name = {module.name: module for module in source}
    stale: list[str] = []
    for name, (allowed, reason) in EXCEPTIONS.items():
        assert reason
        imported = {entry.name.split(".")[0] for entry in by_name[name].imports} if name in by_name else set()
        stale.extend(f"{name} does not import {module}" for module in allowed if module not in imported)
    assert not stale, "\n".join(stale)


UPWARD = {
    "up": ("millbeck.storage.log", "from millbeck.server.node import Node", 1),
    "same row": ("millbeck.storage.log", "import millbeck.raft.machine", 1),
    "up, for types": ("millbeck.kernel.x", "if TYPE_CHECKING:\n    from millbeck.wire import codec", 1),
    "up, inside a function": ("millbeck.kernel.x", "def f():\n    from millbeck.host import clock", 1),
    "up, by package": ("millbeck.kernel.x", "from millbeck import server", 1),
    "up, relative": ("millbeck.kernel.x", "from ..server import node", 1),
    "down": ("millbeck.server.node", "from millbeck.kernel import errors\nimport millbeck.storage.log", 0),
    "own package": ("millbeck.server.node", "from millbeck.server import turn\nfrom . import call", 0),
    "from the top": ("millbeck", "from millbeck.testing import broker", 1),
}


@pytest.mark.parametrize(("name", "text", "count"), UPWARD.values(), ids=UPWARD.keys())
def test_the_check_of_layers(make_module: Callable[[str, str], Module], name: str, text: str, count: int) -> None:
    assert len(list(_upward_imports(make_module(name, text)))) == count


ROOM_IMPORTS = {
    "up": ("millbeck.server.network.call", "from millbeck.server.requests.dispatch import Dispatcher", 1),
    "same row": ("millbeck.server.fetch.handler", "from millbeck.server.metadata import replay", 1),
    "up, for types": (
        "millbeck.server.loop.tasks",
        "if TYPE_CHECKING:\n    from millbeck.server.network.call import Call",
        1,
    ),
    "the context": ("millbeck.server.network.call", "from millbeck.server.broker import Broker", 1),
    "the context, for types": (
        "millbeck.server.network.call",
        "if TYPE_CHECKING:\n    from millbeck.server.broker import Broker",
        0,
    ),
    "down": ("millbeck.server.requests.dispatch", "from millbeck.server.network.call import Call", 0),
    "own room": ("millbeck.server.share.sessions", "from millbeck.server.share import settings", 0),
    "from elsewhere": ("millbeck.cli.main", "from millbeck.server.node import Node", 0),
}


@pytest.mark.parametrize(("name", "text", "count"), ROOM_IMPORTS.values(), ids=ROOM_IMPORTS.keys())
def test_the_check_of_rooms(make_module: Callable[[str, str], Module], name: str, text: str, count: int) -> None:
    assert len(list(_upward_imports_inside_server(make_module(name, text)))) == count


IMPURITIES = {
    "plain": ("import time", 1),
    "from": ("from os.path import join", 1),
    "inside a function": ("def f():\n    import random", 1),
    "for types": ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import asyncio", 0),
    "otherwise": ("import typing\nif typing.TYPE_CHECKING:\n    pass\nelse:\n    import asyncio", 1),
    "harmless": ("import math\nfrom dataclasses import dataclass", 0),
}


@pytest.mark.parametrize(("text", "count"), IMPURITIES.values(), ids=IMPURITIES.keys())
def test_the_check_of_purity(make_module: Callable[[str, str], Module], text: str, count: int) -> None:
    assert len(list(_impure_imports(make_module("millbeck.kernel.x", text)))) == count


TOUCHES = {
    "clock": ("import time", 1),
    "file": ("import os\nos.unlink(path)", 1),
    "harmless attribute": ("import os\nos.path.join(a, b)", 0),
    "harmless import": ("from os.path import join\nfrom os import strerror", 0),
    "seeded": ("import random\nrandom.Random(5)", 0),
    "unseeded": ("import random\nrandom.random()", 1),
    "from": ("from secrets import token_bytes", 1),
    "event loop": ("import asyncio", 0),
    "a variable of that name": ("def f(os):\n    os.unlink", 0),
}


@pytest.mark.parametrize(("text", "count"), TOUCHES.values(), ids=TOUCHES.keys())
def test_the_check_of_the_machine(make_module: Callable[[str, str], Module], text: str, count: int) -> None:
    assert len(list(_touches_of_the_machine(make_module("millbeck.server.x", text)))) == count


def _upward_imports(module: Module) -> Iterator[str]:
    for imported in module.imports:
        top, _, rest = imported.name.partition(".")
        target = rest.split(".")[0]
        if top != "millbeck" or target not in LAYERS or target == module.package:
            continue
        if not module.package and target == "compiled":
            continue
        if not module.package or LAYERS[target] >= LAYERS[module.package]:
            yield f"{module.shown}:{imported.line} {module.package or 'millbeck'} imports {target}"


def _room(module: Module) -> str:
    """The part of ``server`` that a module belongs to; "" outside, and for the package itself."""
    parts = module.name.split(".")
    return parts[2] if parts[:2] == ["millbeck", "server"] and len(parts) > 2 else ""


def _upward_imports_inside_server(module: Module) -> Iterator[str]:
    room = _room(module)
    for imported in module.imports:
        parts = imported.name.split(".")
        target = parts[2] if parts[:2] == ["millbeck", "server"] and len(parts) > 2 else ""
        if not room or not target or target == room:
            continue
        is_context = imported.is_for_types and imported.name in CONTEXTS
        if ROOMS[target] >= ROOMS[room] and not is_context:
            yield f"{module.shown}:{imported.line} {room} imports {target}"


def _impure_imports(module: Module) -> Iterator[str]:
    allowed, _ = EXCEPTIONS.get(module.name, ((), ""))
    for imported in module.imports:
        top = imported.name.split(".")[0]
        if top in IMPURE and top not in allowed and not imported.is_for_types:
            yield f"{module.shown}:{imported.line} imports {imported.name}"


def _touches_of_the_machine(module: Module) -> Iterator[str]:
    allowed, _ = EXCEPTIONS.get(module.name, ((), ""))
    for line, used in _uses_of_the_machine(module):
        if used.split(".")[0] not in allowed:
            yield f"{module.shown}:{line} uses {used}: take it from the environment"


def _is_on_the_real_machine(module: Module) -> bool:
    return any(module.is_under(prefix) for prefix in ON_THE_REAL_MACHINE)


def _uses_of_the_machine(module: Module) -> Iterator[tuple[int, str]]:
    """(line, what) of every import of the machine's modules that is not confined to their harmless attributes."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            top = node.module.split(".")[0]
            if top in REAL_MACHINE and node.module != "os.path":
                for alias in node.names:
                    if alias.name not in HARMLESS.get(top, ()):
                        yield node.lineno, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                if top in REAL_MACHINE and top not in HARMLESS:
                    yield node.lineno, alias.name
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            harmless = HARMLESS.get(node.value.id)
            is_module = any(entry.name.split(".")[0] == node.value.id for entry in module.imports)
            if harmless is not None and is_module and node.attr not in harmless:
                yield node.lineno, f"{node.value.id}.{node.attr}"


def _calls_of(tree: ast.AST, name: str) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node.lineno
