"""The controller of a node follows the node's settings."""

from __future__ import annotations

from asking import in_house
from house import Client, House

from millbeck.kernel.environment import Environment
from millbeck.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest


def test_defaults_of_new_topics_are_the_nodes() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        request = CreateTopicsRequest(topics=[CreatableTopic("t", num_partitions=-1, replication_factor=-1)])
        (result,) = (await client.ask(request, 7)).topics
        assert (result.error_code, result.num_partitions) == (0, 4)

    in_house(scenario, num_partitions="4", default_replication_factor="1")


def test_a_controller_with_a_listener_says_where_it_is_and_one_without_does_not() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        assert house.node is not None
        controllers = house.node.broker.image.cluster.controllers
        found = {number: [each.port for each in one.endpoints] for number, one in controllers.items()}
        assert found == ({1: [9093]} if house.node.config.controller_addresses() else {})

    in_house(scenario)
    in_house(scenario, listeners="PLAINTEXT://:9092,CTL://:9093", controller_listener_names="CTL")
