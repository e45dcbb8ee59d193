"""kcat: every verb is one run of the command, or, for a group member, one that stays."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from typing import IO, Any

from tests.interop.drivers.session import Driver, DriverError, Unsupported, received, serve, value_to_send

RUN_TIMEOUT_S = 90
FIELD = "\x1f"
REBALANCE = re.compile(r"rebalanced \(memberid [^)]*\): (assigned|revoked):? ?(.*)")


class KcatDriver(Driver):
    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._member: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._assignment: list[int] = []
        self._records: list[dict[str, Any]] = []

    def _run(self, *arguments: str, feed: bytes = b"") -> str:
        done = subprocess.run(
            ["kcat", "-b", self.bootstrap, *arguments], input=feed, capture_output=True, timeout=RUN_TIMEOUT_S
        )
        complaint = done.stderr.decode(errors="replace")
        if done.returncode != 0 or "Delivery failed" in complaint:
            code = 10 if "Message size too large" in complaint else None
            raise DriverError(code, "kcat", complaint.strip()[-2000:])
        return done.stdout.decode()

    def do_produce(
        self,
        topic: str,
        records: list[dict[str, Any]],
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        size_bytes_max: int = 1_000_000,
        pause_ms: int = 0,
    ) -> dict[str, Any]:
        settings = {
            "acks": acks,
            "enable.idempotence": str(idempotent).lower(),
            "message.max.bytes": str(size_bytes_max),
            "linger.ms": "0" if pause_ms else "20",
            "retry.backoff.ms": "50",
            "reconnect.backoff.ms": "20",
            "reconnect.backoff.max.ms": "200",
            "message.timeout.ms": "60000",
        }
        options = [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
        if any(record.get("timestamp_ms") for record in records):
            raise Unsupported("kcat sets no timestamps")
        if pause_ms:
            # kcat takes all its input before it sends, so a pace means nothing to it: one record a request, and -E so
            # that it lives through a lost connection.
            options += ["-E", "-X", "batch.num.messages=1"]
        # Headers are per run, so a run takes the neighbours that share partition and headers.
        for group in _alike(records):
            self._produce_alike(topic, group, ["-z", codec, *options])
        return {"acknowledged": None}

    def _produce_alike(self, topic: str, records: list[dict[str, Any]], options: list[str]) -> None:
        headers = []
        for name, value in records[0].get("headers") or []:
            headers += ["-H", name if value is None else f"{name}={value}"]
        common = ["-P", "-t", topic, "-p", str(records[0].get("partition", 0)), *headers, *options]
        if "value_size" in records[0]:
            with tempfile.NamedTemporaryFile() as file:
                file.write(value_to_send(records[0]) or b"")
                file.flush()
                self._run(*common, file.name)
            return
        lines = [f"{record.get('key') or ''}{FIELD}".encode() + (value_to_send(record) or b"") for record in records]
        # -Z makes what is empty null.
        self._run(*common, "-Z", "-K", FIELD, feed=b"\n".join(lines) + b"\n")

    def do_consume(
        self,
        topic: str,
        count: int,
        partition: int = 0,
        offset: int = 0,
        size_bytes_max: int = 1 << 20,
        timeout_ms: int = 30_000,
    ) -> dict[str, Any]:
        output = self._run(
            *("-C", "-t", topic, "-p", str(partition), "-o", str(offset), "-c", str(count), "-e", "-q", "-J"),
            *("-X", f"max.partition.fetch.bytes={size_bytes_max}"),
        )
        return {"records": [_from_json(line) for line in output.splitlines()]}

    def do_offsets_for_times(self, topic: str, partition: int, timestamps_ms: list[int]) -> dict[str, Any]:
        offsets = []
        for timestamp_ms in timestamps_ms:
            output = self._run("-Q", "-t", f"{topic}:{partition}:{timestamp_ms}")
            match = re.search(r"offset (-?\d+)", output)
            if match is None:
                raise DriverError(None, "kcat", output)
            offsets.append(int(match.group(1)))
        return {"offsets": offsets}

    def do_watermarks(self, topic: str, partition: int) -> dict[str, Any]:
        low, high = self.do_offsets_for_times(topic, partition, [-2, -1])["offsets"]
        return {"low": low, "high": high}

    def do_join(self, group: str, topic: str, session_timeout_ms: int = 10_000) -> dict[str, Any]:
        settings = [
            "auto.offset.reset=earliest",
            f"session.timeout.ms={session_timeout_ms}",
            "heartbeat.interval.ms=500",
        ]
        options = [part for setting in settings for part in ("-X", setting)]
        self._member = subprocess.Popen(
            ["kcat", "-b", self.bootstrap, "-G", group, topic, "-J", "-u", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._member.stdout is not None
        assert self._member.stderr is not None
        threading.Thread(target=self._read_records, args=(self._member.stdout,), daemon=True).start()
        threading.Thread(target=self._read_rebalances, args=(self._member.stderr,), daemon=True).start()
        return {}

    def _read_records(self, stream: IO[str]) -> None:
        for line in stream:
            with self._lock:
                self._records.append(_from_json(line))

    def _read_rebalances(self, stream: IO[str]) -> None:
        for line in stream:
            if match := REBALANCE.search(line):
                partitions = [int(one) for one in re.findall(r"\[(\d+)\]", match.group(2))]
                with self._lock:
                    self._assignment = sorted(partitions) if match.group(1) == "assigned" else []

    def do_poll(self, duration_ms: int) -> dict[str, Any]:
        time.sleep(duration_ms / 1000)
        with self._lock:
            records, self._records = self._records, []
            return {"assignment": self._assignment, "records": records}

    def do_leave(self) -> dict[str, Any]:
        assert self._member is not None, "join first"
        os.kill(self._member.pid, signal.SIGINT)
        try:
            self._member.wait(20)
        except subprocess.TimeoutExpired:
            self._member.kill()
            raise DriverError(None, "kcat", "did not leave the group") from None
        self._member = None
        return {}

    def do_list_topics(self) -> dict[str, Any]:
        found = json.loads(self._run("-L", "-J"))
        return {"topics": sorted(one["topic"] for one in found["topics"])}

    def do_describe_topic(self, topic: str) -> dict[str, Any]:
        (found,) = json.loads(self._run("-L", "-J", "-t", topic))["topics"]
        if found.get("error"):
            raise DriverError(None, "kcat", found["error"])
        return {"partitions": len(found["partitions"]), "leaders": [one["leader"] for one in found["partitions"]]}

    def close(self) -> None:
        if self._member is not None:
            self._member.kill()


def _alike(records: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Neighbours with equal partition and headers; a large value stands alone, as it goes through a file."""
    groups: list[list[dict[str, Any]]] = []
    for record in records:
        alone = "value_size" in record
        if groups and not alone and "value_size" not in groups[-1][-1]:
            last = groups[-1][-1]
            if (last.get("partition"), last.get("headers")) == (record.get("partition"), record.get("headers")):
                groups[-1].append(record)
                continue
        groups.append([record])
    return groups


def _from_json(line: str) -> dict[str, Any]:
    """kcat -J gives headers as a flat list of names and values."""
    found = json.loads(line)
    flat = found.get("headers") or []
    key, payload = found.get("key"), found.get("payload")
    return received(
        partition=found["partition"],
        offset=found["offset"],
        timestamp_ms=found.get("ts", -1),
        key=None if key is None else key.encode(),
        value=None if payload is None else payload.encode(),
        headers=[(flat[index], flat[index + 1]) for index in range(0, len(flat), 2)],
    )


if __name__ == "__main__":
    serve(KcatDriver)
