"""Fetch: how much a reply carries, and how many sessions are remembered."""

from __future__ import annotations

from millbeck.kernel.options import INT, Section, at_least, option
from millbeck.kernel.units import MIB


class FetchOptions(Section):
    fetch_max_bytes = option(
        "fetch.max.bytes",
        INT,
        55 * MIB,
        valid=at_least(1024),
        doc="The most a fetch reply carries, unless its first batch alone is larger.",
    )
    max_incremental_fetch_session_cache_slots = option(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1000,
        valid=at_least(0),
        doc="How many incremental fetch sessions are kept at a time.",
    )
