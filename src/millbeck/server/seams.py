"""Loads the plugins that settings name, from entry points of installed packages.

Only the node's own file may name them, never a dynamic config; a package declares them in its metadata:

    [project.entry-points."millbeck.create_topic_policy"]
    OurPolicy = "our_package.policies:OurPolicy"

The entry point is called once at start, with the node's settings as a mapping, and returns the plugin.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from typing import Any

from millbeck.kernel.errors import InvalidConfig


def load_seam(
    group: str, setting: str, name: str, settings: Mapping[str, str], *, method: str, built_in: Iterable[str] = ()
) -> Any:
    """Create the plugin of an entry point; it must have that method. Raises `InvalidConfig` naming the setting, and the
    ``built_in`` names that it could have as well."""
    found = {each.name: each for each in entry_points(group=group)}
    if name not in found:
        known = f": {', '.join(sorted(found))}" if found else ", and none is"
        known += "".join(f"; built in: {each}" for each in [", ".join(built_in)] if each)
        raise InvalidConfig(f"{setting}: no installed package has an entry point {name} in the group {group}{known}")
    try:
        made = found[name].load()(dict(settings))
    except Exception as error:
        raise InvalidConfig(f"{setting}: {name} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(getattr(made, method, None)):
        raise InvalidConfig(f"{setting}: the plugin {name} has no method {method}")
    return made
