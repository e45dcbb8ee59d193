"""millbeck: a commit log that speaks Apache Kafka's protocol, written in Python."""

from millbeck import compiled as _compiled

__version__ = "0.1.0"
"""The version of this release; packages, commands and requests to brokers read it from here."""

_compiled.choose()
