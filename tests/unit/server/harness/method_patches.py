"""For tests that put something of their own in the place of a class of the data path, or of one of its methods.

Compiled classes take their own kind only, and keep their methods: such tests run where the Python files do.
"""

from __future__ import annotations

import pytest

from millbeck import compiled

needs_sources = pytest.mark.skipif(compiled.in_use(), reason="a compiled class takes no stand-in")
