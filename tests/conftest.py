"""Tests run the Python files of the data path: some of them replace part of a class, which an extension does not allow.

Processes that tests start run what they find. ``MILLBECK_COMPILED=1`` makes the tests themselves run the extensions;
``make test`` does that once more for the packages that have any.

Hypothesis measures no time: how fast an example is depends on what else the machine does.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from millbeck import compiled

if os.environ.get("MILLBECK_COMPILED", "") in ("", "0"):
    compiled.use_sources()

settings.register_profile("millbeck", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("millbeck")
