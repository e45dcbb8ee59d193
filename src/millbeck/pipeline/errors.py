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


class CheckpointMismatch(PipelineError):
    """The checkpoint was written by another form of the pipeline."""


class JavaMissing(PipelineError):
    """There is no Java, or none that Spark runs on."""


class ConnectMissing(PipelineError):
    """What speaks to a Spark Connect server is not installed."""


class NotExactlyOnce(PipelineError):
    """What was asked for cannot be written exactly once."""


class TopologyError(PipelineError):
    """A topology asks for something that does not fit together or that Spark cannot do."""


class BadRecord(PipelineError):
    """A record could not be read with its serde, and the topology says that this fails the query."""


class SchemaError(PipelineError):
    """A schema is wrong, is not there, or does not fit what it is for."""


class UnknownSchema(SchemaError):
    """A registry has no schema of this id or for this subject."""


class DefinitionError(PipelineError):
    """A pipeline file is not what it should be."""


class AlreadyRunning(PipelineError):
    """Somebody runs this pipeline."""


class DriverLost(PipelineError):
    """Spark's Java process has ended under a run: only a new process can go on."""
