"""Policies: plugins that refuse topics and configs which Kafka's own rules would allow.

A policy is named by ``create.topic.policy.class.name`` or ``alter.config.policy.class.name``. It raises
`PolicyViolation`, whose message the client gets. Any other exception refuses the change as well, and is reported: a
policy that fails must neither allow everything nor stop the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from millbeck.kernel.errors import ApiError, PolicyViolation


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRequest:
    """A topic to be created, after the checks of the controller. Either the first two are set, or ``assignments``."""

    name: str
    partition_count: int | None
    replication_factor: int | None
    assignments: Mapping[int, tuple[int, ...]] | None
    """The brokers of each partition, if the client chose them."""
    configs: Mapping[str, str]
    """Those of the request, without defaults."""

    @property
    def partitions(self) -> int:
        return len(self.assignments or {}) if self.partition_count is None else self.partition_count

    @property
    def replicas(self) -> int:
        """The smallest number of replicas of a partition."""
        if self.replication_factor is not None:
            return self.replication_factor
        return min(map(len, (self.assignments or {}).values()), default=0)


class CreateTopicPolicy(Protocol):
    def validate(self, topic: TopicRequest) -> None:
        """Raise `PolicyViolation` to refuse the topic. It runs on the event loop, so it must not block."""


class AlterConfigPolicy(Protocol):
    def validate(self, resource_type: str, name: str, configs: Mapping[str, str | None]) -> None:
        """Raise `PolicyViolation` to refuse the change. ``resource_type`` is TOPIC, BROKER, GROUP or CLIENT_METRICS;
        a config that is deleted is None."""


class Policies:
    """The policies of a controller; their unexpected exceptions are reported and refuse the change."""

    def __init__(
        self,
        create_topic: CreateTopicPolicy | None = None,
        alter_config: AlterConfigPolicy | None = None,
        *,
        on_failure: Callable[[str, Exception], None] = lambda setting, error: None,
    ) -> None:
        """``on_failure`` gets the setting of a policy, and the policy's unexpected exception."""
        self._create_topic = create_topic
        self._alter_config = alter_config
        self._on_failure = on_failure

    def check_topic(self, topic: TopicRequest) -> None:
        """Check a new topic. Raises `PolicyViolation`."""
        policy = self._create_topic
        if policy is not None:
            self._ask("create.topic.policy.class.name", lambda: policy.validate(topic))

    def check_configs(self, resource_type: str, name: str, configs: Mapping[str, str | None]) -> None:
        """Check changed configs of a resource. Raises `PolicyViolation`."""
        policy = self._alter_config
        if policy is not None:
            self._ask("alter.config.policy.class.name", lambda: policy.validate(resource_type, name, configs))

    def _ask(self, setting: str, validate: Callable[[], None]) -> None:
        try:
            validate()
        except PolicyViolation:
            raise
        except ApiError as error:
            raise PolicyViolation(error.message or str(error)) from error
        except Exception as error:
            self._on_failure(setting, error)
            raise PolicyViolation(
                f"the policy of {setting} failed; the log of the active controller has the reason"
            ) from error


NO_POLICIES = Policies()
