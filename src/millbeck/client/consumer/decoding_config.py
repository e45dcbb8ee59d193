"""Settings of all consumers: deserializers and interceptors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from millbeck.client.config import CLIENT, ClientConfig
from millbeck.client.plugins import plugin
from millbeck.kernel.options import LIST, STRING, Importance, option

if TYPE_CHECKING:
    from millbeck.client.consumer.decoding import ConsumerInterceptor
    from millbeck.client.serialization import Deserializer


class DecodingConfig(ClientConfig):
    key_deserializer = option(
        "key.deserializer",
        STRING,
        None,
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="The deserializer of keys: bytes, str, int or json, the name of one of Kafka's deserializers for "
        "these types, "
        "an entry point in the group millbeck.deserializers, or module:class.",
    )
    value_deserializer = option(
        "value.deserializer",
        STRING,
        None,
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="The deserializer of values; see key.deserializer.",
    )
    interceptor_classes = option(
        "interceptor.classes",
        LIST,
        (),
        scope=CLIENT,
        importance=Importance.LOW,
        doc="Interceptors, which get each record before the program, and each commit: entry points "
        "in the group millbeck.interceptors, or module:class.",
    )

    def deserializer(self, name: str) -> Deserializer[Any] | None:
        """The deserializer of ``key.deserializer`` or ``value.deserializer``; None for bytes."""
        from millbeck.client.serialization import serde_named

        named = self.key_deserializer if name == "key.deserializer" else self.value_deserializer
        return None if named is None else cast("Deserializer[Any]", serde_named(name, named, "Deserializer"))

    def interceptors(self) -> list[ConsumerInterceptor]:
        return [plugin("interceptor.classes", name, "millbeck.interceptors")() for name in self.interceptor_classes]
