"""What a pipeline's user is told. Each message says what is wrong and what to do about it."""

from __future__ import annotations


class PipelineError(Exception):
    """A pipeline cannot go on; the message is for whoever runs it."""


class InvalidOption(PipelineError):
    """An option of a source or sink is wrong."""


class BrokerUnreachable(PipelineError):
    """No broker answers at the addresses of ``kafka.bootstrap.servers``."""


class TopicMissing(PipelineError):
    """A topic that was named does not exist."""


class RecordsLost(PipelineError):
    """Offsets that the query has still to read are gone."""


class TopicChanged(RecordsLost):
    """The topic was deleted and created again since the query's checkpoint was written."""


class JavaMissing(PipelineError):
    """There is no Java, or none that Spark runs on."""


class NotExactlyOnce(PipelineError):
    """What was asked for cannot be written exactly once."""
