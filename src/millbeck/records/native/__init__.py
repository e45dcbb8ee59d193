"""The hot loops over records, as ordinary modules that are also compiled.

Each module here is typed Python that mypyc compiles into an extension beside it; without a compiler the Python file
itself runs, with the same results and the same bounds checks. An extension wins over its Python file, so
``MILLBECK_PURE=1`` in the environment loads the Python files by hand before anyone imports them. `COMPILED` says which
is in use; ``tools/compiled.py`` builds the extensions in place and finds stale ones.

Reading the environment here is the one exception to the purity of this package: it chooses between two equal
implementations when they are loaded, and nothing afterwards depends on it.
"""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Final

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
)
"""In the order they import each other."""


def load_pure(prefix: str = __name__) -> dict[str, ModuleType]:
    """The Python files as modules, whatever extensions exist.

    Under another ``prefix`` than this package's own they stand beside the ones in use, for tests that compare; their
    imports of each other then still go to the modules in use.
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


if os.environ.get("MILLBECK_PURE", "") not in ("", "0"):
    globals().update(load_pure())

from millbeck.records.kernels import walk as _walk  # noqa: E402  (the switch above comes first)

COMPILED: Final = not (_walk.__file__ or "").endswith(".py")
"""Whether the extensions are in use."""
