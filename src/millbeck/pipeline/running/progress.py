"""The progress of a batch as reported by Spark: figures, and a line to print. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from millbeck.pipeline.offsets import IDLE_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress:
    batch: int
    rows: int
    rows_per_second: float
    lag: int | None
    """Records of the sources not read yet; None if no source reports it."""
    batch_seconds: float
    state_rows: int
    state_bytes: int
    late: int = 0
    """Records that came after the watermark, and were dropped."""
    watermark: str | None = None
    """The event time up to which windows are closed, as of the beginning of the batch."""

    def line(self) -> str:
        parts = [f"batch {self.batch}", f"{self.rows_per_second:,.0f} rows/s", f"{self.rows:,} rows"]
        if self.lag is not None:
            parts.append(f"lag {self.lag:,}")
        parts.append(f"took {self.batch_seconds:.1f} s")
        if self.late:
            parts.append(f"late {self.late:,} (before {self.watermark})")
        if self.state_rows:
            parts.append(f"state {self.state_rows:,} rows, {_size(self.state_bytes)}")
        return "  ".join(parts)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def progress_of(reported: Mapping[str, Any]) -> BatchProgress:
    """Parse the progress of a batch; ``reported`` is the JSON of Spark's StreamingQueryProgress."""
    stores = reported.get("stateOperators") or []
    lags = [_lag(source) for source in reported.get("sources") or []]
    known = [lag for lag in lags if lag is not None]
    return BatchProgress(
        batch=int(reported.get("batchId", -1)),
        rows=int(_in_all(reported, "numInputRows")) - sum(map(_marker_rows, reported.get("sources") or [])),
        rows_per_second=_in_all(reported, "processedRowsPerSecond"),
        lag=sum(known) if known else None,
        batch_seconds=_number((reported.get("durationMs") or {}).get("triggerExecution")) / 1000,
        state_rows=sum(int(store.get("numRowsTotal", 0)) for store in stores),
        state_bytes=sum(int(store.get("memoryUsedBytes", 0)) for store in stores),
        late=sum(int(store.get("numRowsDroppedByWatermark", 0)) for store in stores)
        + sum(
            int(_number(observed_values(row).get("late"))) for row in (reported.get("observedMetrics") or {}).values()
        ),
        watermark=(reported.get("eventTime") or {}).get("watermark"),
    )


def observed_values(row: Any) -> Mapping[str, Any]:
    """The observed metrics of one name: a mapping in the JSON, a Row with Spark Connect; empty when there are none."""
    if row is None:
        return {}
    values: Mapping[str, Any] = row.asDict() if hasattr(row, "asDict") else row
    return values


def _in_all(reported: Mapping[str, Any], name: str) -> float:
    """The sum over all sources, because Spark Connect omits totals."""
    if name in reported:
        return _number(reported[name])
    return sum(_number(source.get(name)) for source in reported.get("sources") or [])


def _marker_rows(source: Mapping[str, Any]) -> int:
    """How many of the source's rows are no records, but tell the event time of an idle source."""
    start, end = (_json(source.get(name)) or {} for name in ("startOffset", "endOffset"))
    if end.get(IDLE_KEY) == start.get(IDLE_KEY):
        return 0
    is_all = {**start, IDLE_KEY: None} == {**end, IDLE_KEY: None}
    return int(_number(source.get("numInputRows"))) if is_all else 1


def _lag(source: Mapping[str, Any]) -> int | None:
    end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    if end is None or latest is None:
        return None
    return sum(max(0, offset - end.get(partition, 0)) for partition, offset in latest.items())


def _offsets(text: Any) -> dict[str, int] | None:
    """Offsets by ``topic-partition``, from the JSON that the source writes; None for anything else."""
    parsed = _json(text)
    if parsed is None:
        return None
    found: dict[str, int] = {}
    for topic, partitions in parsed.items():
        if isinstance(partitions, Mapping):
            found |= {
                f"{topic}-{partition}": offset for partition, offset in partitions.items() if isinstance(offset, int)
            }
    return found or None


def _json(text: Any) -> Mapping[str, Any] | None:
    """An object, from its JSON if it is text; None for anything else."""
    if isinstance(text, str):
        try:
            text = json.loads(text)
        except ValueError:
            return None
    return text if isinstance(text, Mapping) else None


def _number(value: Any) -> float:
    """Parse a number; Spark reports NaN and Infinity, as text, for batches too short to measure."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0.0
    return number if number - number == 0 else 0.0


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
