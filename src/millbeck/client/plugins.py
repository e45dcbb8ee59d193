"""Loads classes named by settings: partitioners, interceptors, serializers, assignors.

A name is an entry point in the group of its kind, declared by an installed package:

    [project.entry-points."millbeck.partitioners"]
    by-region = "shop.routing:RegionPartitioner"

or ``module:attribute`` or ``module.attribute``, found where the program runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from millbeck.kernel.errors import InvalidConfig


def plugin(setting: str, name: str, group: str) -> Any:
    """Load the class or factory named by ``setting``; raises `InvalidConfig`."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=group):
        if entry.name == name:
            try:
                return entry.load()
            except Exception as error:
                raise InvalidConfig(f"{setting}: the entry point {name} cannot be loaded: {error}") from error
    module, separator, attribute = name.partition(":") if ":" in name else name.rpartition(".")
    if separator and module:
        try:
            return getattr(import_module(module), attribute)
        except Exception as error:
            raise InvalidConfig(f"{setting}: {name} cannot be loaded: {error}") from error
    raise InvalidConfig(f"{setting}: {name} is neither an entry point in {group} nor module:class")
