"""millbeck: a commit log that speaks Apache Kafka's protocol, written in Python."""

__version__ = "0.1.0"
