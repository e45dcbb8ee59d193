"""Log lines of all services: counted by service, level and minute; errors are written to a topic of their own."""

from millbeck.pipeline.topology.serdes import json
from millbeck.pipeline.topology.windows import tumbling

PIPELINE = {
    "name": "log-aggregation",
    "bootstrap_servers": "127.0.0.1:9092",
    "bad_records": "unreadable-logs",
    "idle_after": "30 seconds",
}


def build(topology):
    lines = topology.stream("logs", value=json("service STRING, level STRING, message STRING"))
    lines.filter(lambda line: line.value.level == "ERROR").to("errors")
    (
        lines.group_by(lambda line: {"service": line.value.service, "level": line.value.level})
        .windowed_by(tumbling("1 minute", grace="10 seconds"), emit="final")
        .count()
        .map(
            lambda result: (
                result.key.key.service,
                {"level": result.key.key.level, "minute": result.key.start, "lines": result.value},
            )
        )
        .to("lines-by-minute")
    )
