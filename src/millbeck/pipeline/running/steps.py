"""Topologies of a single stream, written in TOML with expressions in Spark SQL.

[source]
topic = "orders"
value = "customer STRING, amount DOUBLE"      # JSON of this type, or a serde (`serde_tables`); else bytes

[[steps]]
filter = "value.amount > 100"
[[steps]]
key = "value.customer"
[[steps]]
value = { customer = "value.customer", cents = "CAST(value.amount * 100 AS BIGINT)" }

[sink]
topic = "large-orders"                        # key and value may be serdes here, too
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from millbeck.pipeline.error_summaries import explained
from millbeck.pipeline.errors import DefinitionError, PipelineError
from millbeck.pipeline.running.serde_tables import check_serde, serde_of
from millbeck.pipeline.short_errors import did_you_mean

if TYPE_CHECKING:
    from millbeck.pipeline.topology.topology import Topology

_KINDS: Final = ("filter", "key", "value")


def check_steps(given: Mapping[str, Any]) -> None:
    """Check the steps; raises `DefinitionError`. The expressions are checked by Spark when the topology is built."""
    for part, allowed in (("source", ("topic", "key", "value")), ("sink", ("topic", "key", "value"))):
        table = given.get(part)
        if not isinstance(table, dict) or not isinstance(table.get("topic"), str):
            raise DefinitionError(f'[{part}] needs a topic, as in topic = "orders"')
        for name in table:
            if name not in allowed:
                raise DefinitionError(
                    f"[{part}] has no {name!r}{did_you_mean(name, allowed)}; there are {', '.join(allowed)}"
                )
            if name != "topic":
                check_serde(table[name], f"[{part}] {name}")
    steps = given.get("steps", [])
    if not isinstance(steps, list):
        raise DefinitionError("steps are written as [[steps]], one after the other")
    for number, step in enumerate(steps, 1):
        if not isinstance(step, dict) or len(step) != 1 or next(iter(step)) not in _KINDS:
            raise DefinitionError(f"step {number} must be one of {', '.join(_KINDS)}, not {step!r}")
        kind, argument = next(iter(step.items()))
        is_fields = (
            kind == "value" and isinstance(argument, dict) and all(isinstance(text, str) for text in argument.values())
        )
        if not isinstance(argument, str) and not is_fields:
            raise DefinitionError(f"step {number}: {kind} must be an expression of Spark SQL, not {argument!r}")


def builder_of(given: Mapping[str, Any], file: Path) -> Callable[[Topology], None]:
    """The function that builds the topology; ``file`` is the pipeline file; relative paths in it are relative to its
    directory.
    """
    folder = file.parent

    def build(topology: Topology) -> None:
        from pyspark.errors import PySparkException

        def serdes_of(part: str) -> dict[str, Any]:
            return {name: serde_of(argument, folder) for name, argument in given[part].items() if name != "topic"}

        stream = topology.stream(given["source"]["topic"], **serdes_of("source"))
        for number, step in enumerate(given.get("steps", []), 1):
            kind, argument = next(iter(step.items()))
            try:
                described = _columns_of(argument)
                if kind == "filter":
                    stream = stream.filter(_saying(described))
                elif kind == "key":
                    stream = stream.select_key(_saying(described))
                else:
                    stream = stream.map_values(_saying(described))
            except (PipelineError, PySparkException) as error:
                raise DefinitionError(f"{file}: step {number} ({kind}): {explained(error)}") from error
        stream.to(given["sink"]["topic"], **serdes_of("sink"))

    return build


def _columns_of(argument: str | Mapping[str, str]) -> Any:
    from pyspark.sql import functions as sf

    return sf.expr(argument) if isinstance(argument, str) else {name: sf.expr(text) for name, text in argument.items()}


def _saying(described: Any) -> Callable[[Any], Any]:
    return lambda record: described
