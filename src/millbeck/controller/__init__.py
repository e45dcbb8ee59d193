"""The single-writer controller: requests in, records and replies out. Pure."""

from __future__ import annotations

from millbeck.controller.auto_creation import InternalTopic, auto_creation_request
from millbeck.controller.config_rules import ConfigCheck, ConfigRules, OptionRules
from millbeck.controller.features import QuorumFeatures
from millbeck.controller.machine import Controller
from millbeck.controller.nodes import NodeRegistration
from millbeck.controller.options import ControllerOptions
from millbeck.controller.producer_ids import ProducerIdBlock
from millbeck.controller.result import Result

__all__ = [
    "ConfigCheck",
    "ConfigRules",
    "Controller",
    "ControllerOptions",
    "InternalTopic",
    "NodeRegistration",
    "OptionRules",
    "ProducerIdBlock",
    "QuorumFeatures",
    "Result",
    "auto_creation_request",
]
