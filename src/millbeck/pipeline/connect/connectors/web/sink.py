"""The HTTP sink: at least once, with a key in each request by which the service can tell a repetition.

Requests of a log partition are sent in the order of their records, one after another. The batches of a share are a
function of its records, but shares are not the same after a failure: a service that must see each record once looks at
the offsets in the key, or at an id in the record.
"""

from __future__ import annotations

import base64
import http.client
import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.connectors.interface import ConnectorContext, SinkConnector, SinkRecords, SinkShare
from millbeck.pipeline.connect.connectors.web.settings import HTTP_SINK, header_pairs, status_ranges
from millbeck.pipeline.connect.converters.json_converter import JsonConverter
from millbeck.pipeline.connect.errors import ConnectError, InvalidValue, RetriableError
from millbeck.pipeline.connect.model.record import SinkRecord
from millbeck.pipeline.connect.model.values import plain_text

_ANSWER_BYTES_MAX: Final = 64 * 1024
_JSON = JsonConverter({"schemas.enable": "false", "decimal.format": "NUMERIC"})


class HttpSink(SinkConnector):
    """Sends requests."""

    declared = HTTP_SINK

    def __init__(self, values: Mapping[str, Any], context: ConnectorContext) -> None:
        super().__init__(values, context)
        self._url = urlsplit(values["http.api.url"])
        self._retried = status_ranges(values["retry.on.status.codes"])
        self._rejected = status_ranges(values["reject.on.status.codes"])
        self._is_json = values["request.body.format"].lower() == "json"
        self._nulls: str = values["behavior.on.null.values"].lower()
        self._connection: http.client.HTTPConnection | None = None

    def write(self, share: SinkShare, records: SinkRecords) -> int:
        waiting: list[tuple[SinkRecord, bytes]] = []
        place: TopicPartition | None = None
        count = 0
        for record in records:
            if record.origin != place or len(waiting) >= self.values["batch.max.size"]:
                count += self._sent(waiting, records)
                waiting, place = [], record.origin
            try:
                body = self._body(record)
            except InvalidValue as error:
                records.reject(record, error)
                continue
            if body is not None:
                waiting.append((record, body))
            elif self._nulls == "delete":
                count += self._sent(waiting, records) + self._sent([(record, b"")], records, method="DELETE")
                waiting = []
        return count + self._sent(waiting, records)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _body(self, record: SinkRecord) -> bytes | None:
        if record.value is None:
            if self._nulls == "fail":
                raise InvalidValue("the record has no value")
            return None
        if self._is_json:
            return _JSON.to_bytes(record.topic, record.value_schema, record.value)
        if isinstance(record.value, bytes):
            return bytes(record.value)
        return plain_text(record.value).encode("utf-8", "replace")

    def _sent(self, batch: list[tuple[SinkRecord, bytes]], records: SinkRecords, method: str | None = None) -> int:
        """Send a batch; records that the service refuses are rejected. Returns how many it took."""
        if not batch:
            return 0
        status, answer = self._exchange(batch, method)
        if 200 <= status < 300:
            return len(batch)
        text = f"the service answered {status}: {answer.decode('utf-8', 'replace').strip()[:300]}"
        if any(status in each for each in self._retried):
            raise RetriableError(text)
        if not any(status in each for each in self._rejected):
            raise ConnectError(f"{text}: check http.api.url and the credentials")
        if len(batch) == 1:
            records.reject(batch[0][0], InvalidValue(text))
            return 0
        return sum(self._sent([each], records, method) for each in batch)

    def _exchange(self, batch: list[tuple[SinkRecord, bytes]], method: str | None) -> tuple[int, bytes]:
        first, last = batch[0][0], batch[-1][0]
        headers = dict(header_pairs(self.values["headers"], self.values["header.separator"]))
        headers.setdefault("Content-Type", "application/json" if self._is_json else "text/plain; charset=utf-8")
        headers |= self._credentials()
        if self.values["idempotency.key.header"]:
            origin = first.origin or TopicPartition(first.topic or "", first.partition or 0)
            key = f"{origin.topic}-{origin.partition}-{first.offset}"
            headers[self.values["idempotency.key.header"]] = key if last is first else f"{key}-{last.offset}"
        content = self._content([body for _, body in batch])
        try:
            connection = self._connected()
            connection.request(method or self.values["request.method"].upper(), self._target(first), content, headers)
            with connection.getresponse() as response:
                answer = response.read(_ANSWER_BYTES_MAX)
                if response.read(1):
                    self.close()  # the rest of a long answer is not wanted
                return response.status, answer
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise RetriableError(f"{self._url.hostname} does not answer: {error or type(error).__name__}") from error

    def _content(self, bodies: list[bytes]) -> bytes:
        if self.values["batch.max.size"] == 1:
            return bodies[0]
        if self._is_json and self.values["batch.json.as.array"]:
            return b"[" + b",".join(bodies) + b"]"
        prefix, separator, suffix = (
            str(self.values[f"batch.{part}"]).encode() for part in ("prefix", "separator", "suffix")
        )
        return prefix + separator.join(bodies) + suffix

    def _target(self, record: SinkRecord) -> str:
        path = self._url.path or "/"
        target = f"{path}?{self._url.query}" if self._url.query else path
        key = "" if record.key is None else _text(record.key)
        return target.replace("${topic}", quote(record.topic or "", safe="")).replace("${key}", quote(key, safe=""))

    def _credentials(self) -> dict[str, str]:
        match self.values["auth.type"].upper():
            case "BASIC":
                password = self.values["connection.password"]
                pair = f"{self.values['connection.user']}:{'' if password is None else password.reveal()}"
                return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
            case "BEARER" if self.values["bearer.token"] is not None:
                return {"Authorization": f"Bearer {self.values['bearer.token'].reveal()}"}
        return {}

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            host, timeout_s = self._url.hostname or "", self.values["http.request.timeout.ms"] / 1000
            if self._url.scheme == "https":
                context = ssl.create_default_context(cafile=self.values["https.ssl.ca.location"])
                self._connection = http.client.HTTPSConnection(
                    host, self._url.port or 443, timeout=timeout_s, context=context
                )
            else:
                self._connection = http.client.HTTPConnection(host, self._url.port or 80, timeout=timeout_s)
        return self._connection


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else plain_text(value)
