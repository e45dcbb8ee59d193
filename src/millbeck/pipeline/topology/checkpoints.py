"""Needs pyspark: fit the offsets in a checkpoint to the sources of a query.

Spark writes one line of offsets for each place where a query reads a source, in the order of the query. All places that
read the same source always have the same offsets. So when only the number of places differs, because an output or the
topic of bad records was added or removed, or because an earlier version read a source once per output, the lines can be
rewritten without losing or repeating a record. Other differences are left to Spark, which refuses them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from millbeck.pipeline.offsets import ABOUT_KEYS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NONE: Final = "-"
"""Spark's text for a source without an offset."""
_VERSION: Final = "v1"
_STATEFUL: Final = (
    "TransformWithStateInPySpark",
    "Aggregate",
    "Deduplicate",
    "DeduplicateWithinWatermark",
    "FlatMapGroupsWithState",
)

_SPARK_AGGREGATES: Final = ("stateStoreSave", "sessionWindowStateStoreSaveExec")

_REAL_TIME: Final = "real-time"
"""An empty file: the offsets are those of Spark's own source, and the state is that of another output mode."""

Topics = frozenset[str]


def sources_of(frame: DataFrame) -> list[Topics] | None:
    """The topics of each place that reads a source; None with Spark Connect, which does not provide them."""
    if getattr(frame, "_jdf", None) is None:
        return None
    return [
        frozenset((node.extraOptions().get("subscribe") or "").split(","))
        for node in _nodes(frame)
        if _kind(node) == "StreamingRelationV2"
    ]


def stateful_count(frame: DataFrame) -> int:
    """The number of operators with state in Spark's plan."""
    return sum(_has_state(node) for node in _nodes(frame))


def aggregate_count(frame: DataFrame) -> int:
    """The number of Spark's own aggregates with state in the plan; 0 with Spark Connect, which does not provide it."""
    if getattr(frame, "_jdf", None) is None:
        return 0
    return sum(_kind(node) == "Aggregate" and bool(node.isStreaming()) for node in _nodes(frame))


def runs_python(frame: DataFrame) -> bool:
    """Whether an expression of the plan, or an operator, runs in Python; False with Spark Connect."""
    if getattr(frame, "_jdf", None) is None:
        return False
    jvm: Any = frame.sparkSession._jvm
    pattern = jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()
    return any(_node_runs_python(node, pattern) for node in _nodes(frame))


def _node_runs_python(node: Any, pattern: Any) -> bool:
    expressions = node.expressions()
    return any(expressions.apply(number).containsPattern(pattern) for number in range(expressions.size()))


def node_kinds(frame: DataFrame) -> Iterator[str]:
    """The kinds of the nodes in Spark's plan."""
    return map(_kind, _nodes(frame))


def _nodes(frame: DataFrame) -> Iterator[Any]:
    """Yield all nodes of the plan, each one before its inputs."""
    planned: Any = frame._jdf
    waiting = [planned.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        yield node
        children = node.children()
        waiting.extend(children.apply(number) for number in reversed(range(children.size())))


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _has_state(node: Any) -> bool:
    if _kind(node) == "Join":
        return bool(node.left().isStreaming() and node.right().isStreaming())
    return _kind(node) in _STATEFUL and bool(node.isStreaming())


class OffsetLog:
    """The directory ``offsets`` of a checkpoint, on any file system."""

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        jvm: Any = spark._jvm
        session: Any = spark._jsparkSession
        self._jvm = jvm
        self._root = jvm.org.apache.hadoop.fs.Path(checkpoint)
        self._path = jvm.org.apache.hadoop.fs.Path(self._root, "offsets")
        settings = session.sessionState().newHadoopConf()
        self._files = self._path.getFileSystem(settings)
        managers = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
        self._atomic = managers.create(self._path, settings)

    def stateful_count(self) -> int:
        """The number of operators whose state is in the checkpoint."""
        path = self._jvm.org.apache.hadoop.fs.Path(self._root, "state")
        if not self._files.exists(path):
            return 0
        return sum(found.getPath().getName().isdigit() for found in self._files.listStatus(path))

    def aggregate_count(self) -> int:
        """The number of Spark's own aggregates whose state is in the checkpoint."""
        path = self._jvm.org.apache.hadoop.fs.Path(self._root, "state/*/_metadata")
        count = 0
        for operator in self._files.globStatus(path) or []:
            text = self._first_text(operator.getPath())
            count += any(f'"operatorName":"{name}"' in text for name in _SPARK_AGGREGATES)
        return count

    def _first_text(self, path: Any) -> str:
        """The text of the first file in a directory, or below it."""
        for found in sorted(self._files.listStatus(path), key=lambda each: str(each.getPath())):
            if found.getPath().getName().startswith("."):
                continue
            if found.isDirectory():
                return self._first_text(found.getPath())
            return self._text(found.getPath())
        return ""

    def _text(self, path: Any) -> str:
        stream = self._files.open(path)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def is_real_time(self) -> bool:
        """Whether the checkpoint is of a query in real-time mode."""
        return bool(self._files.exists(self._jvm.org.apache.hadoop.fs.Path(self._root, _REAL_TIME)))

    def mark_real_time(self) -> None:
        self._files.create(self._jvm.org.apache.hadoop.fs.Path(self._root, _REAL_TIME), True).close()

    def last_batches(self) -> list[int]:
        """The numbers of the last two batches: a restart reads both."""
        if not self._files.exists(self._path):
            return []
        names = [found.getPath().getName() for found in self._files.listStatus(self._path)]
        return sorted(int(name) for name in names if name.isdigit())[-2:]

    def read(self, batch: int) -> tuple[list[str], list[str]]:
        """Read one batch: the lines about the batch itself, and the lines of the sources."""
        lines = self._text(self._jvm.org.apache.hadoop.fs.Path(self._path, str(batch))).splitlines()
        return lines[:2], lines[2:]

    def write(self, batch: int, lines: Sequence[str]) -> None:
        target = self._jvm.org.apache.hadoop.fs.Path(self._path, str(batch))
        stream = self._atomic.createAtomic(target, True)
        try:
            stream.write(bytearray("\n".join(lines).encode()))
        except Exception:
            stream.cancel()
            raise
        stream.close()


def source_count(log: OffsetLog) -> int | None:
    """The number of sources in the last batch; None if there is no batch, or its format is unknown."""
    batches = log.last_batches()
    if not batches:
        return None
    about, sources = log.read(batches[-1])
    return len(sources) if about and about[0] == _VERSION else None


def fit_sources(log: OffsetLog, wanted: Sequence[Topics]) -> None:
    """Rewrite the lines of the last batches for the wanted sources, if nothing else differs."""
    changed = {}
    for batch in log.last_batches():
        about, lines = log.read(batch)
        fitted = fitted_lines(lines, wanted)
        if fitted is None:
            return
        if fitted != lines:
            changed[batch] = [*about, *fitted]
    for batch, lines in changed.items():
        log.write(batch, lines)


def fitted_lines(lines: Sequence[str], wanted: Sequence[Topics]) -> list[str] | None:
    """A line of offsets for each wanted source; None if the checkpoint has other sources, or one source with different
    offsets.
    """
    by_topics: dict[Topics, str] = {}
    for line in lines:
        topics = _topics_of(line)
        if topics is None or by_topics.setdefault(topics, line) != line:
            return None
    if set(by_topics) != set(wanted):
        return None
    return [by_topics[topics] for topics in wanted]


def _topics_of(line: str) -> Topics | None:
    if line == _NONE:
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return frozenset(name for name in found if name not in ABOUT_KEYS) if isinstance(found, dict) else None
