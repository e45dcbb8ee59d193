"""The operations that ``acl explain`` checks: those named, or all that a request needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millbeck.cli.acls.files import AclAssertion
from millbeck.cli.acls.options import Resource
from millbeck.cli.acls.words import check_host, check_principal, read_word, word
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from millbeck.server.network.route import Need

Questions = list[list[AclAssertion]]
"""The checks of a request: in each inner list at least one must be allowed."""


def questions_of(
    ctx: click.Context,
    principal: str,
    host: str,
    operations: tuple[str, ...],
    request: str | None,
    resources: tuple[Resource, ...],
) -> Questions:
    check_principal(principal)
    check_host(host)
    if (request is None) == (not operations):
        raise click.UsageError("give --operation or --request", ctx)
    if request is not None:
        return _of_request(ctx, principal, host, request, resources)
    if not resources:
        raise click.UsageError("name a resource: --topic, --group, --cluster, --transactional-id, ...", ctx)
    return [
        [_question(principal, host, read_word(Operation, operation), resource)]
        for resource in resources
        for operation in operations
    ]


def _of_request(
    ctx: click.Context, principal: str, host: str, request: str, resources: tuple[Resource, ...]
) -> Questions:
    # Imported here because the handlers import most of the broker.
    from millbeck.server.requests.routes import CONTROLLER_ROUTES, ROUTES
    from millbeck.wire.api_keys import APIS

    routes = {APIS[route.api_key].name: route for route in (*CONTROLLER_ROUTES, *ROUTES)}
    by_name = {name.lower(): route for name, route in routes.items()}
    route = by_name.get(request.lower().replace("_", ""))
    if route is None:
        from millbeck.cli.suggestions import did_you_mean

        raise click.UsageError(f"there is no request {request!r}{did_you_mean(request, routes)}", ctx)
    found: Questions = []
    for need in route.needs:
        either = [each for option in (need, *need.alternatives) for each in _asked(principal, host, option, resources)]
        if either:
            found.append(either)
        elif not need.when:
            raise click.UsageError(f"{request} needs {_names(need)}", ctx)
    if not found:
        click.echo(f"{request} needs no ACL")
    return found


def _names(need: Need) -> str:
    return " or ".join(f"--{word(each.resource_type)}" for each in (need, *need.alternatives))


def _asked(principal: str, host: str, need: Need, resources: tuple[Resource, ...]) -> list[AclAssertion]:
    if need.resource_type is ResourceType.CLUSTER:
        return [_question(principal, host, need.operation, (ResourceType.CLUSTER, CLUSTER_NAME))]
    return [
        _question(principal, host, need.operation, resource)
        for resource in resources
        if resource[0] is need.resource_type
    ]


def _question(principal: str, host: str, operation: Operation, resource: Resource) -> AclAssertion:
    kind, name = resource
    return AclAssertion(principal=principal, host=host, operation=operation, resource_type=kind, resource_name=name)
