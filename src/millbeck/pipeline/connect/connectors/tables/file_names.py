"""Names of data files: no two attempts share one, since the first may have been committed."""

from __future__ import annotations

import uuid


def unique_name(connector: str) -> str:
    plain = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in connector)[:60]
    return f"{plain}-{uuid.uuid4().hex}.parquet"
