"""Options of fetch requests: the size of responses and the number of fetch sessions."""

from __future__ import annotations

from millbeck.kernel.options import INT, Section, at_least, option
from millbeck.kernel.units import MIB


class FetchOptions(Section):
    fetch_max_bytes = option(
        "fetch.max.bytes",
        INT,
        55 * MIB,
        valid=at_least(1024),
        doc="The maximum size of a fetch response in bytes, exceeded only when its first batch alone is larger.",
    )
    max_incremental_fetch_session_cache_slots = option(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1000,
        valid=at_least(0),
        doc="The maximum number of incremental fetch sessions.",
    )
