"""Native modules: the hot loops over records, written in Python and compiled with mypyc where possible.

Each module here is typed Python that mypyc compiles into an extension beside it; without a compiler the Python file
itself runs, with the same results and the same bounds checks. Python prefers an extension to the file beside it, so
the Python files are loaded by hand, before anyone imports them, when ``MILLBECK_PURE=1`` is set or when one of them was
edited since the last build. `COMPILED` says which is in use; ``tools/compiled.py`` builds the extensions in place.

Reading the environment is the one exception to this package's rule of no I/O: it selects one of two equivalent
implementations at import, and nothing afterwards depends on it.
"""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Final

from millbeck.compiled import NATIVE_STAMPS, is_stale

MODULES: Final = (
    "record",
    "varints",
    "read",
    "write",
    "walk",
    "murmur2",
    "compaction",
    "bytes_writer",
    "columns",
    "rows",
    "schema_ids",
)
"""The native modules, in import order."""


def load_pure(prefix: str = __name__) -> dict[str, ModuleType]:
    """Load the Python files as modules, even if there are extensions.

    With a ``prefix`` other than this package's name they are loaded beside the ones in use, for tests that compare
    both; their imports of each other then still refer to the modules in use.
    """
    loaded: dict[str, ModuleType] = {}
    for name in MODULES:
        spec = spec_from_file_location(f"{prefix}.{name}", f"{__path__[0]}/{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = loaded[name] = module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    return loaded


if os.environ.get("MILLBECK_PURE", "") not in ("", "0") or is_stale(stamps=NATIVE_STAMPS):
    globals().update(load_pure())

from millbeck.records.native import walk as _walk  # noqa: E402  (the switch above comes first)

COMPILED: Final = not (_walk.__file__ or "").endswith(".py")
"""Whether the extensions are in use."""
