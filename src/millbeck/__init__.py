"""millbeck: a commit log that speaks Apache Kafka's protocol, written in Python."""

from millbeck import compiled as _compiled

__version__ = "0.1.0"

_compiled.choose()
