"""Every API is served or has a reason not to be."""

from __future__ import annotations

from millbeck.security.authorizer import SUPPORTED_OPERATIONS, Operation
from millbeck.server.requests.handlers.api_versions import served_versions
from millbeck.server.requests.routes import CONTROLLER_ROUTES, FORWARDED, NOT_SERVED, ROUTES
from millbeck.wire.api_keys import APIS

SERVED = {route.api_key for route in ROUTES}
BY_CONTROLLERS = {route.api_key for route in CONTROLLER_ROUTES}
UNSTABLE = {22: "version 6 is for two-phase commit, which Kafka 4.3 offers only where unstable versions are"}


def test_every_api_is_handled_or_refused_with_a_reason() -> None:
    assert sorted(SERVED | BY_CONTROLLERS | set(NOT_SERVED)) == sorted(APIS)
    assert (SERVED | BY_CONTROLLERS).isdisjoint(NOT_SERVED)
    assert all(reason and reason[0].islower() for reason in NOT_SERVED.values())


def test_each_is_served_once_in_all_versions_of_kafka() -> None:
    assert len(SERVED) == len(ROUTES)
    assert len(BY_CONTROLLERS) == len(CONTROLLER_ROUTES)
    for route in (*ROUTES, *CONTROLLER_ROUTES):
        api = APIS[route.api_key]
        assert route.min_version == api.min_version
        assert route.max_version == api.max_version or route.api_key in UNSTABLE
        assert route.with_unstable_versions().max_version == api.max_version
        assert route.with_unstable_versions().run is route.run


def test_every_api_says_what_it_asks_the_authorizer() -> None:
    """Only ApiVersions, authentication itself, and tokens that one has the secret of are for everyone."""
    assert {route.api_key for route in (*ROUTES, *CONTROLLER_ROUTES) if not route.needs} == {17, 18, 36, 39, 40}
    for route in (*ROUTES, *CONTROLLER_ROUTES):
        for need in route.needs:
            for each in (need, *need.alternatives):
                is_known = each.operation in SUPPORTED_OPERATIONS[each.resource_type]
                # Kafka lets DELETE on the cluster delete topics, and does not list it among the cluster's operations.
                assert is_known or (route.api_key == 20 and each.operation is Operation.DELETE), route.api_key


def test_api_versions_tells_exactly_the_routes() -> None:
    told = {each.api_key: (each.min_version, each.max_version) for each in served_versions(ROUTES)}
    assert told == {route.api_key: (route.advertised_min, route.max_version) for route in ROUTES}


def test_only_produce_is_advertised_below_what_is_served() -> None:
    lower = [(route.api_key, route.advertised_min) for route in ROUTES if route.advertised_min != route.min_version]
    assert lower == [(0, 0)]


def test_the_apis_of_this_release_are_there() -> None:
    for key in (0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 32, 33, 35, 37, 42, 44, 47):
        assert key in SERVED
    assert {55, 57, 60, 61, 74, 75} <= SERVED


KAFKA_CONTROLLER_APIS = {
    *(
        1,
        17,
        18,
        19,
        20,
        29,
        30,
        31,
        32,
        33,
        36,
        37,
        38,
        39,
        40,
        41,
        43,
        44,
        45,
        46,
        49,
        50,
        51,
        52,
        53,
        54,
        55,
        56,
        57,
    ),
    *(58, 59, 60, 62, 63, 64, 67, 70, 73, 80, 81, 82),
}
KAFKA_CONTROLLER_ONLY = {52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82}


def test_each_listener_serves_what_kafkas_does() -> None:
    assert BY_CONTROLLERS <= KAFKA_CONTROLLER_APIS
    assert SERVED.isdisjoint(KAFKA_CONTROLLER_ONLY)
    assert SERVED & KAFKA_CONTROLLER_APIS - {1} <= BY_CONTROLLERS


def test_what_is_forwarded_is_served_on_both_sides_and_never_an_envelope() -> None:
    assert FORWARDED <= SERVED & BY_CONTROLLERS
    assert not FORWARDED & {1, 18, 32, 58, 60}
