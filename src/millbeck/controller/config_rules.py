"""The rules for dynamic configs: which options may be set on which resource, and to which values.

`ConfigRules` is the interface that the controller uses; `OptionRules` implements it from the option declarations. Topic
and group options must be declared and valid. Broker options may be set only if they can change while the broker runs;
undeclared names are stored, since they may belong to a plugin. Further checks (unsupported options, contradicting
values) are passed in by the server.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from millbeck.kernel.errors import InvalidConfig, InvalidRequest
from millbeck.kernel.isolation import Isolation
from millbeck.kernel.options import LIST, ConfigLayers, OptionSet, Update, resolve_option
from millbeck.metadata.image import ConfigResource, ConfigsImage, ResourceType
from millbeck.wire.messages.topics import CreatableTopicConfigs

ConfigCheck = Callable[[ConfigResource, Mapping[str, str], Collection[str]], None]
"""Raises an `ApiError` for invalid options of a resource; gets all options as they would be, and the ones that are set.
"""


class ConfigRules(Protocol):
    isolation: Isolation
    """Records failures of one partition, broker or periodic task, while the others continue."""

    def check(self, resource: ConfigResource, options: Mapping[str, str], changed: Sequence[str]) -> None:
        """Raise `ApiError` if ``options``, of which ``changed`` are new, are invalid for the resource."""

    def is_list(self, resource: ConfigResource, name: str) -> bool:
        """Whether the option is a list, to which values can be appended."""

    def value_in_force(self, configs: ConfigsImage, resource: ConfigResource, name: str) -> str | None:
        """The option's value without an override on the resource, to which appended values are added."""

    def topic_configs(self, configs: ConfigsImage, overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        """Every option of a topic with these overrides, as CreateTopics reports them."""

    def topic_value(self, configs: ConfigsImage, overrides: Mapping[str, str], name: str) -> object:
        """The value of one option of a topic with these overrides."""


class OptionRules:
    """The rules derived from option declarations; ``static`` has the settings in the properties file of node
    ``node_id``."""

    def __init__(
        self,
        *,
        topic: OptionSet,
        broker: OptionSet,
        group: OptionSet,
        static: Mapping[str, str],
        node_id: int,
        checks: Sequence[ConfigCheck] = (),
        isolation: Isolation | None = None,
    ) -> None:
        self._topic = topic
        self._broker = broker
        self._group = group
        self._static = static
        self._node_id = node_id
        self._checks = tuple(checks)
        self._defaults = broker.default_texts()
        self.isolation = isolation or Isolation()

    def check(self, resource: ConfigResource, options: Mapping[str, str], changed: Sequence[str]) -> None:
        match resource.type:
            case ResourceType.TOPIC:
                self._check_declared(self._topic, "topic", options)
            case ResourceType.GROUP:
                if not resource.name:
                    raise InvalidRequest("Default group resources are not allowed.")
                self._check_declared(self._group, "group", options)
            case ResourceType.BROKER:
                self._check_broker(resource, options, changed)
            case _:
                raise InvalidRequest(f"Unexpected resource type {resource.type}.")
        for check in self._checks:
            check(resource, options, changed)

    def is_list(self, resource: ConfigResource, name: str) -> bool:
        declared = self._options_of(resource).by_name.get(name)
        return declared is not None and declared.kind is LIST

    def value_in_force(self, configs: ConfigsImage, resource: ConfigResource, name: str) -> str | None:
        declared = self._options_of(resource).by_name.get(name)
        if declared is None or declared.sensitive:
            return None
        return declared.text(resolve_option(declared, self._layers(configs, {})).value)

    def topic_configs(self, configs: ConfigsImage, overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        layers = self._layers(configs, overrides)
        reported = []
        for declared in sorted(self._topic, key=lambda declared: declared.name):
            if declared.internal:
                continue
            resolved = resolve_option(declared, layers)
            reported.append(
                CreatableTopicConfigs(
                    name=declared.name,
                    value=None if declared.sensitive else declared.text(resolved.value),
                    config_source=resolved.source,
                    is_sensitive=declared.sensitive,
                )
            )
        return reported

    def topic_value(self, configs: ConfigsImage, overrides: Mapping[str, str], name: str) -> object:
        return resolve_option(self._topic[name], self._layers(configs, overrides)).value

    def _layers(self, configs: ConfigsImage, overrides: Mapping[str, str]) -> ConfigLayers:
        return ConfigLayers(
            overrides=overrides,
            dynamic_broker=configs.of_broker(self._node_id),
            dynamic_default=configs.of_all_brokers(),
            static=self._static,
            defaults=self._defaults,
        )

    def _options_of(self, resource: ConfigResource) -> OptionSet:
        if resource.type == ResourceType.TOPIC:
            return self._topic
        return self._group if resource.type == ResourceType.GROUP else self._broker

    def _check_declared(self, declared: OptionSet, scope: str, options: Mapping[str, str]) -> None:
        for name, text in options.items():
            if name not in declared:
                raise InvalidConfig(f"Unknown {scope} config name: {name}")
            declared.parse(name, text)

    def _check_broker(self, resource: ConfigResource, options: Mapping[str, str], changed: Sequence[str]) -> None:
        known = [self._broker[name] for name in changed if name in self._broker]
        fixed = [declared.name for declared in known if declared.update is Update.READ_ONLY]
        if fixed:
            raise InvalidRequest(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
        single = [declared.name for declared in known if declared.update is Update.PER_BROKER]
        if single and not resource.name:
            raise InvalidRequest(
                "Cannot update these configs at default cluster level, broker id must be specified: "
                f"[{', '.join(single)}]"
            )
        for declared in known:
            if declared.name in options:
                declared.parse(options[declared.name])
