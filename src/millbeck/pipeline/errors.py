"""Errors for the users of pipelines. Each message names the problem and the remedy."""

from __future__ import annotations

from millbeck.client.schemas import errors as schemas


class PipelineError(Exception):
    """A pipeline cannot continue; the message is for its user."""


class InvalidOption(PipelineError):
    """An option of a source or sink is invalid."""


class BrokerUnreachable(PipelineError):
    """No broker answers at the addresses of ``kafka.bootstrap.servers``."""


class TopicMissing(PipelineError):
    """A topic does not exist."""


class RecordsLost(PipelineError):
    """Offsets that the query has not read yet are gone."""


class TopicChanged(RecordsLost):
    """The topic was deleted and created again since the query's checkpoint was written."""


class CheckpointMismatch(PipelineError):
    """The checkpoint was written by an incompatible version of the pipeline."""


class JavaMissing(PipelineError):
    """No Java was found, or none that Spark supports."""


class ConnectorMissing(PipelineError):
    """The jars of Spark's Kafka connector are missing and cannot be fetched."""


class ConnectMissing(PipelineError):
    """The packages of the Spark Connect client are not installed."""


class NotExactlyOnce(PipelineError):
    """Exactly-once delivery is not possible for this write."""


class TopologyError(PipelineError):
    """A topology is inconsistent, or uses something that Spark does not support."""


class BadRecord(PipelineError, schemas.BadRecord):
    """A record could not be decoded by its serde, and ``bad_records`` is ``fail``."""


class SchemaError(PipelineError, schemas.SchemaError):
    """A schema is invalid, missing, or not suitable for its use."""


class UnknownSchema(SchemaError, schemas.UnknownSchema):
    """A registry has no schema with this id or subject."""


class DefinitionError(PipelineError):
    """A pipeline file is invalid."""


class AlreadyRunning(PipelineError):
    """Another process runs this pipeline."""


class DriverLost(PipelineError):
    """Spark's Java process has ended during a run: only a new process can continue."""
