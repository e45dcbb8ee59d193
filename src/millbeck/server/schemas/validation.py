"""Sets the accepted schemas of this broker's topics with ``confluent.{key,value}.schema.validation``.

They are part of a topic's `ValidationRules`, so the data path looks at ids only, and nothing runs for other topics: the
registry's topic is read while at least one topic needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from millbeck.records.schema_validation import AcceptedIds, SchemaRules
from millbeck.server.local_topics import KEY_SCHEMAS, VALUE_SCHEMAS, LocalTopic
from millbeck.server.schemas.reading import SchemasReader
from millbeck.server.schemas.registered import subject_of

if TYPE_CHECKING:
    from millbeck.server.context import NodeContext
    from millbeck.server.network.broker_connections import BrokerConnections


class SchemaValidation:
    def __init__(self, node: NodeContext, peers: Callable[[], BrokerConnections]) -> None:
        self._node = node
        self._peers = peers
        self._reader: SchemasReader | None = None

    def follow(self) -> None:
        """Called after a change of topics or their configuration."""
        topics = self._validated_topics()
        if topics and self._reader is None:
            topic = self._node.config.topic_defaults.schemas_topic
            self._reader = SchemasReader(self._node, self._peers, topic, self._set_rules)
            self._node.spawn(self._reader.run())
        elif not topics and self._reader is not None:
            self._reader.stop()
            self._reader = None
        self._set_rules()

    async def catch_up(self) -> None:
        """Wait until every schema that is registered now is known. Raises a retriable `ApiError`."""
        if self._reader is not None:
            await self._reader.catch_up()

    def _validated_topics(self) -> list[LocalTopic]:
        return [each for each in self._node.topics.by_name.values() if each.rules.schemas is not None]

    def _set_rules(self) -> None:
        for topic in self._validated_topics():
            config = topic.config
            keys = self._accepted(topic.name, config.confluent_key_subject_name_strategy, is_key=True)
            values = self._accepted(topic.name, config.confluent_value_subject_name_strategy, is_key=False)
            rules = SchemaRules(
                keys=keys if config.confluent_key_schema_validation else None,
                values=values if config.confluent_value_schema_validation else None,
            )
            if rules != topic.rules.schemas:
                topic.rules = replace(topic.rules, schemas=rules)

    def _accepted(self, topic: str, strategy: str, *, is_key: bool) -> AcceptedIds:
        option = KEY_SCHEMAS if is_key else VALUE_SCHEMAS
        subject = subject_of(topic, strategy, is_key=is_key)
        if self._reader is None:
            return AcceptedIds(option, subject)
        return AcceptedIds(option, subject, *self._reader.schemas.of_topic(topic, strategy, is_key=is_key))
