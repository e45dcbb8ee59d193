"""``make test``: its parts one after the other, and at the end a line for each with what came of it and its time.

The tests run on the Python files, the pipeline's on Spark, and those of packages with compiled modules once more on the
extensions. pytest's own output is passed on as it is; the first part that fails is the last one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tools.steps import duration

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
TIMES = BUILD / "test-times.json"
AT_ONCE = ("-n", "3", "--dist", "worksteal")
"""On two processors: many tests wait for nodes. Each worker begins with tests that are neighbours, and share a node."""
ELSEWHERE = ("interop", "fuzz/long", "e2e/long", "spark")
"""Directories with a part or a make target of their own."""
COMPILED = ("kernel", "host", "records", "wire", "storage", "replication")
COMPILED_SERVER = ("cleaner", "fetch", "network", "replicas", "requests", "test_local_topics.py")
COMPILED_RUNS = ("cluster", "damage", "node", "share", "table", "transactions")
COMPILED_TESTS = (
    *(f"unit/{name}" for name in COMPILED),
    *(f"unit/server/{name}" for name in COMPILED_SERVER),
    "contract",
    "model/storage",
    *(f"sim/test_{name}{'' if name == 'damage' else '_run'}.py" for name in COMPILED_RUNS),
)
"""The packages that have compiled modules, and the simulations in which these do most of the work."""


@dataclass(frozen=True, slots=True)
class Part:
    title: str
    arguments: Sequence[str]
    """Of the Python interpreter."""
    settings: Sequence[tuple[str, str]] = ()
    """Environment variables."""

    @property
    def is_tests(self) -> bool:
        return "pytest" in self.arguments


@dataclass(frozen=True, slots=True)
class Outcome:
    part: Part
    code: int
    seconds: float
    counts: str


def parts() -> list[Part]:
    pytest = ("-m", "pytest", "-q", "-m", "not long")
    ignored = [argument for name in ELSEWHERE for argument in ("--ignore", f"tests/{name}")]
    compiled = [f"tests/{name}" for name in COMPILED_TESTS]
    return [
        Part("compile the data path", ("-m", "tools.compiled", "ensure")),
        Part("find a Java for Spark", ("-m", "tools.java")),
        Part("tests on the Python files", (*pytest, *AT_ONCE, "tests", *ignored)),
        Part("tests on Spark", (*pytest, "tests/spark")),
        Part(
            "tests on the compiled modules",
            (*pytest, *AT_ONCE, *compiled, "--seeds=10"),
            (("MILLBECK_COMPILED", "1"),),
        ),
    ]


def main() -> int:
    BUILD.mkdir(exist_ok=True)
    known = _last_times()
    outcomes: list[Outcome] = []
    planned = parts()
    for number, part in enumerate(planned, 1):
        last = f", {duration(known[part.title])} the last time" if part.title in known else ""
        print(f"\n[{number}/{len(planned)}] {part.title}{last}", flush=True)
        outcomes.append(run(part, BUILD / "test-results.xml"))
        if outcomes[-1].code:
            break
    print("\n" + "\n".join(summary(planned, outcomes)), flush=True)
    times = {each.part.title: round(each.seconds, 1) for each in outcomes if each.code == 0}
    TIMES.write_text(json.dumps({**known, **times}, indent=1) + "\n")
    return outcomes[-1].code


def run(part: Part, results: Path) -> Outcome:
    results.unlink(missing_ok=True)
    began_s = time.monotonic()
    extra = [f"--junit-xml={results}"] if part.is_tests else []
    try:
        code = subprocess.run(
            [sys.executable, *part.arguments, *extra], cwd=ROOT, env=environment(part, os.environ)
        ).returncode
    except KeyboardInterrupt:
        code = 130
    return Outcome(part, code, time.monotonic() - began_s, counts_of(results))


def environment(part: Part, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment variables of a part. Where Python writes no bytecode beside its sources, as in many containers,
    it goes to ``build``: the tests start hundreds of processes, and each would compile all that it imports.
    """
    settings = {**inherited, **dict(part.settings)}
    if settings.pop("PYTHONDONTWRITEBYTECODE", ""):
        settings.setdefault("PYTHONPYCACHEPREFIX", str(BUILD / "bytecode"))
    return settings


def counts_of(results: Path) -> str:
    """``120 passed, 3 skipped`` of pytest's report; empty where there is none."""
    try:
        suites = list(ElementTree.parse(results).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        return ""
    total, failed, skipped = (
        sum(int(suite.get(name, "0")) for suite in suites for name in names)
        for names in (("tests",), ("failures", "errors"), ("skipped",))
    )
    counts = {"failed": failed, "passed": total - failed - skipped, "skipped": skipped}
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count or name == "passed")


def summary(planned: Sequence[Part], outcomes: Sequence[Outcome]) -> list[str]:
    width = max(len(part.title) for part in planned)
    lines = []
    for each in outcomes:
        result = each.counts or ("failed" if each.code else "done")
        lines.append(f"{each.part.title:<{width}}  {duration(each.seconds):>12}  {result}")
    lines += [f"{part.title:<{width}}  {'-':>12}  not run" for part in planned[len(outcomes) :]]
    return [*lines, f"{'in all':<{width}}  {duration(sum(each.seconds for each in outcomes)):>12}"]


def _last_times() -> dict[str, float]:
    try:
        times: dict[str, float] = json.loads(TIMES.read_text())
    except (OSError, ValueError):
        return {}
    return times


if __name__ == "__main__":
    sys.exit(main())
