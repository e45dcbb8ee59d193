"""The compiled modules of the data path, and the choice between their compiled and Python form.

They are ordinary typed Python that mypyc also compiles, all together, into extensions beside their files, which Python
prefers. Compiled modules call each other directly, so all of them are used or none: a stale extension would mix old
code with new. Their Python files are loaded instead, with the same results, when

- ``MILLBECK_PURE=1`` asks for it,
- a process asks for it before it imports them (`use_sources`): a test that replaces part of a class needs that,
- this is a source tree in which one of the files was touched since the last build (``make build``).

The record kernels (`millbeck.records.native`) are a group of their own, with the same rules.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from types import ModuleType
from typing import Final

MODULES: Final = (
    "millbeck.host.direct_selector",
    "millbeck.host.files",
    "millbeck.host.part_queue",
    "millbeck.host.read_moderation",
    "millbeck.host.socket_stream",
    "millbeck.kernel.event_batch",
    "millbeck.kernel.file_slice",
    "millbeck.kernel.histogram",
    "millbeck.records.header",
    "millbeck.records.validation",
    "millbeck.replication.divergence",
    "millbeck.replication.fetcher",
    "millbeck.replication.isr",
    "millbeck.replication.log_read",
    "millbeck.replication.partition",
    "millbeck.replication.partition_appends",
    "millbeck.server.fetch.delayed_fetch",
    "millbeck.server.fetch.handler",
    "millbeck.server.fetch.partition_read",
    "millbeck.server.fetch.reading",
    "millbeck.server.fetch.sessions",
    "millbeck.server.local_topics",
    "millbeck.server.network.call",
    "millbeck.server.network.connection",
    "millbeck.server.network.receive",
    "millbeck.server.network.request_metrics",
    "millbeck.server.requests.delayed_produce",
    "millbeck.server.requests.dispatch",
    "millbeck.server.requests.handlers.produce",
    "millbeck.server.requests.heavy_batches",
    "millbeck.storage.compaction.mapping",
    "millbeck.storage.compaction.offset_map",
    "millbeck.storage.compaction.output",
    "millbeck.storage.compaction.payload",
    "millbeck.storage.compaction.rewriting",
    "millbeck.storage.compaction.source_reader",
    "millbeck.storage.compaction.transactions",
    "millbeck.storage.durability",
    "millbeck.storage.file_cache",
    "millbeck.storage.follower_append",
    "millbeck.storage.log",
    "millbeck.storage.log_state",
    "millbeck.storage.offset_index",
    "millbeck.storage.producer_state",
    "millbeck.storage.reading",
    "millbeck.storage.segment",
    "millbeck.storage.staging",
    "millbeck.storage.time_index",
    "millbeck.wire.compact",
    "millbeck.wire.fast_fetch",
    "millbeck.wire.fast_fetch_request",
    "millbeck.wire.fast_produce",
    "millbeck.wire.framing",
    "millbeck.wire.varint",
)
"""The compiled modules; for each one the gain was measured (docs/adr/0007-compiled-data-path.md)."""

SOURCE_TREE: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STAMPS: Final = "build/compiled.stamps"
"""The build's stamp file in a source tree: a line for each file, ``modified_ns size path``."""
NATIVE_STAMPS: Final = "build/native.stamps"
"""The stamp file of the record kernels."""


def stamp(path: str) -> str:
    """The stamp of a file, which shows whether it has changed since the build."""
    state = os.stat(path)
    return f"{state.st_mtime_ns} {state.st_size}"


def is_stale(tree: str = SOURCE_TREE, stamps: str = STAMPS) -> bool:
    """Whether this is a source tree that has changed since its last build. An installed package never is."""
    try:
        with open(f"{tree}/{stamps}", encoding="utf-8") as file:
            lines = file.read().splitlines()
        return any(stamp(f"{tree}/{path}") != was for was, path in (line.rsplit(" ", 1) for line in lines))
    except FileNotFoundError as error:
        # Without stamps nothing was built here; with them, a file is gone.
        return not str(error.filename).endswith(stamps)


class _Sources:
    """Finds Python files before anything else finds extensions, those of an older list of `MODULES` included."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not name.startswith("millbeck.") or name.startswith("millbeck.records.native") or not path:
            return None
        file = f"{path[0]}/{name.rpartition('.')[2]}.py"
        return spec_from_file_location(name, file) if os.path.exists(file) else None


def use_sources() -> None:
    """Load Python files in this process from now on; what is loaded already stays as it is."""
    loaded = [name for name in MODULES if name in sys.modules]
    if any(is_extension(sys.modules[name]) for name in loaded):
        raise RuntimeError(f"extensions are in use already: {', '.join(loaded)}")
    sys.meta_path.insert(0, _Sources())


def is_extension(module: ModuleType) -> bool:
    return (module.__file__ or "").endswith(tuple(EXTENSION_SUFFIXES))


def in_use() -> bool:
    """Whether the extensions are in use."""
    spec = find_spec(MODULES[-1])
    return spec is not None and (spec.origin or "").endswith(tuple(EXTENSION_SUFFIXES))


def choose() -> None:
    """Choose the form to load; called when the package is imported."""
    if os.environ.get("MILLBECK_PURE", "") not in ("", "0") or is_stale():
        use_sources()
