"""Checks whether the data directory of ``millbeck up`` matches the requested nodes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import click

from millbeck.cli.connection_options import file_problem
from millbeck.cli.nodes.ports import WILDCARDS
from millbeck.host import real_environment
from millbeck.host.certificate_authority import AuthorityError
from millbeck.host.local_names import local_names
from millbeck.server.local.secured import SecuredCluster, SecurityDamaged, is_secured, secure

_FORMATTED: Final = "meta.properties"


def node_directory(data: str, node_id: int) -> str:
    return os.path.join(data, f"node-{node_id}")


def is_formatted(directory: str) -> bool:
    return os.path.exists(os.path.join(directory, _FORMATTED))


def check_directory(data: str, *, node_count: int, is_secure: bool) -> None:
    """Refuse to start a secured cluster without ``--secure``, or an unsecured one with it.

    Raises `click.UsageError`.
    """
    is_single, is_several = is_formatted(data), is_formatted(node_directory(data, 1))
    if is_secured(real_environment().files, os.path.abspath(data)):
        if not is_secure:
            raise click.UsageError(f"{data} holds a secured cluster: add --secure, or use another --data")
        if node_count == 1 and is_formatted(node_directory(data, 2)):
            raise click.UsageError(
                f"{data} holds the nodes of a cluster: give the number of nodes with --nodes, or use another --data"
            )
    elif is_secure and (is_single or is_several):
        raise click.UsageError(f"{data} was created without --secure: omit that option, or use another --data")
    elif is_several and node_count == 1:
        raise click.UsageError(
            f"{data} holds the nodes of a cluster: give the number of nodes with --nodes, or use another --data"
        )


def secure_nodes(data: str, node_ids: Sequence[int], *, host: str) -> SecuredCluster:
    """The certificates of these nodes, and the users; created on the first start. Raises `click.ClickException`."""
    named = [] if host in WILDCARDS else [host]
    try:
        return secure(
            real_environment(),
            data,
            node_ids=node_ids,
            hosts=list(dict.fromkeys([*local_names(), *named])),
            is_formatted=is_formatted(node_directory(data, 1)),
        )
    except (SecurityDamaged, AuthorityError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(file_problem(error.filename or data, error)) from error
