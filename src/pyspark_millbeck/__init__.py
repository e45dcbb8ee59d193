"""Spark looks for data sources in modules of this name: ``format("millbeck")`` is there without being registered."""

from millbeck.pipeline.spark_format import MillbeckFormat as DefaultSource

__all__ = ["DefaultSource"]
