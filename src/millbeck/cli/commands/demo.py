"""``millbeck demo``: a node, a stream of orders and a pipeline on Spark, with its results in a table."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Final

import click

from millbeck.cli.verbs import Command

STREAM_SECONDS: Final = 60.0
PER_SECOND: Final = 200
PACKAGES: Final = ("pyspark", "pyarrow", "pandas", "numpy")


@click.command(cls=Command)
@click.option(
    "--seconds",
    type=click.FloatRange(min=5),
    help="The duration of the stream; the default on a terminal is until Ctrl-C.",
)
@click.option(
    "--orders-per-second",
    default=PER_SECOND,
    show_default=True,
    type=click.IntRange(1, 100_000),
    help="Orders generated per second.",
)
@click.option("--master", default="local[*]", show_default=True, metavar="MASTER", help="The Spark master.")
@click.option(
    "-b",
    "--bootstrap-server",
    metavar="HOST:PORT,…",
    help="The bootstrap servers of a running cluster; without it the demo starts its own node.",
)
def command(seconds: float | None, orders_per_second: int, master: str, bootstrap_server: str | None) -> None:
    """Run the demo: a node, a stream of orders, and a pipeline on Spark that computes revenue by region.

    On a terminal it runs until Ctrl-C, otherwise for a minute. At the end the results are recomputed from the orders,
    and any difference is an error.

    \b
    Examples:
      millbeck demo
      millbeck demo --seconds 60
      millbeck demo --master spark://host:7077 --bootstrap-server host:9092
    """
    _check_packages()
    from millbeck.cli.demo.directories import demo_directory
    from millbeck.cli.demo.session import Demo
    from millbeck.pipeline.errors import PipelineError
    from millbeck.pipeline.java import find_java

    lasts = seconds if seconds is not None else (None if sys.stdout.isatty() else STREAM_SECONDS)
    try:
        if not master.startswith("sc://"):
            find_java()
        with contextlib.ExitStack() as stack:
            Demo(demo_directory(os.environ), master, orders_per_second).run(stack, bootstrap_server, lasts)
    except PipelineError as error:
        raise click.ClickException(str(error)) from error


def _check_packages() -> None:
    from importlib.util import find_spec

    missing = [name for name in PACKAGES if sys.modules.get(name, ...) is None or find_spec(name) is None]
    if missing:
        raise click.ClickException(
            f"Spark's packages are not installed ({', '.join(missing)}): pip install 'millbeck[spark]'"
        )
