"""Registers the modules here under aiokafka's names, for libraries that import aiokafka themselves."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

_HERE: Final = "millbeck.client.compat.aiokafka"

_MODULES: Final = {
    "aiokafka": "",
    "aiokafka.abc": "abc",
    "aiokafka.admin": "admin",
    "aiokafka.admin.client": "admin",
    "aiokafka.admin.new_partitions": "admin",
    "aiokafka.admin.new_topic": "admin",
    "aiokafka.admin.records_to_delete": "admin",
    "aiokafka.consumer": "consumer",
    "aiokafka.consumer.consumer": "consumer",
    "aiokafka.coordinator": "assignors",
    "aiokafka.coordinator.assignors": "assignors",
    "aiokafka.coordinator.assignors.abstract": "assignors",
    "aiokafka.coordinator.assignors.range": "assignors",
    "aiokafka.coordinator.assignors.roundrobin": "assignors",
    "aiokafka.coordinator.assignors.sticky": "assignors",
    "aiokafka.errors": "errors",
    "aiokafka.helpers": "tls_contexts",
    "aiokafka.partitioner": "producer",
    "aiokafka.producer": "producer",
    "aiokafka.producer.message_accumulator": "producer",
    "aiokafka.producer.producer": "producer",
    "aiokafka.structs": "structs",
}
"""The registered modules, each with the module here whose names it has."""


def install() -> None:
    """Have ``import aiokafka`` find this package, in this process.

    Raises RuntimeError if aiokafka itself was imported before: its classes are in use then.
    """
    present = sys.modules.get("aiokafka")
    if present is not None:
        if getattr(present, "__millbeck__", False):
            return
        raise RuntimeError("aiokafka is imported already: call install() before anything imports it")
    for name, origin in _MODULES.items():
        source = import_module(f"{_HERE}.{origin}" if origin else _HERE)
        module = ModuleType(name, source.__doc__)
        module.__dict__.update({key: value for key, value in vars(source).items() if not key.startswith("__")})
        module.__spec__ = ModuleSpec(name, None, is_package=True)
        module.__path__ = []
        module.__dict__["__millbeck__"] = True
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
