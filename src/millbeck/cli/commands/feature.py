"""``millbeck feature``: show, upgrade and downgrade the cluster's feature levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from millbeck.cli.connection_options import Target, run_admin, target_options
from millbeck.cli.output import TEXT, document, output_option, show_rows, stream_output_option
from millbeck.cli.verbs import SubcommandGroup, kafka_tool

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import FeatureDescription, UpgradeType

METADATA_VERSION = "metadata.version"
_VERBS = {"UPGRADE": "upgraded", "SAFE_DOWNGRADE": "downgraded", "UNSAFE_DOWNGRADE": "downgraded"}
"""The words of Kafka's tool for each kind of change."""
_KAFKA_ORDER = (
    "kraft.version",
    "transaction.version",
    "group.version",
    "eligible.leader.replicas.version",
    "share.version",
    "streams.version",
)
"""The order in which Kafka's tool prints the levels of a release."""


@click.group(cls=SubcommandGroup, flags={})
def command() -> None:
    """Show and change feature levels (Kafka's kafka-features)."""


@command.command("describe")
@output_option
@target_options
def describe(output: str, target: Target) -> None:
    """Show the supported and the finalized level of each feature.

    \b
    Examples:
      millbeck feature describe
    """

    async def work(admin: Admin) -> None:
        rows = feature_rows(await admin.describe_features())
        if kafka_tool() is None:
            show_rows(rows, output)
            return
        from millbeck.cli.kafka_tools.formats import feature_line

        for row in rows:
            click.echo(feature_line(row))

    run_admin(target, work)


def _target_is_not_asked(function: click.decorators.FC) -> click.decorators.FC:
    """Accept and ignore the bootstrap options: Kafka's tool requires them here, so scripts pass them."""
    for name in ("--bootstrap-server", "--bootstrap-controller", "--command-config"):
        function = click.option(name, hidden=True, expose_value=False)(function)
    return function


def _change_options(function: click.decorators.FC) -> click.decorators.FC:
    for option in (
        click.option("--dry-run", is_flag=True, help="Only print what would change."),
        click.option(
            "-f",
            "--feature",
            "features",
            multiple=True,
            metavar="NAME=LEVEL",
            help="Feature and level; can be repeated.",
        ),
        click.option(
            "-r",
            "--release-version",
            metavar="RELEASE",
            help="Change to the levels of this release, such as 4.3-IV0: its metadata.version and, on "
            "upgrade, the other features.",
        ),
        click.option("--metadata", metavar="RELEASE", help="Change only metadata.version, to that of this release."),
    ):
        function = option(function)
    return function


@command.command("upgrade")
@_change_options
@target_options
@click.pass_context
def upgrade(
    ctx: click.Context,
    release_version: str | None,
    metadata: str | None,
    features: tuple[str, ...],
    dry_run: bool,
    target: Target,
) -> None:
    """Upgrade feature levels. Nodes that do not support the new level can no longer join the cluster.

    \b
    Examples:
      millbeck feature upgrade --release-version 4.3-IV0
      millbeck feature upgrade --feature eligible.leader.replicas.version=1
    """
    from millbeck.client.admin.results import UpgradeType

    levels = levels_of(ctx, release_version or metadata, features)
    others = {} if release_version is None else release_levels(levels[METADATA_VERSION])
    _change(ctx, levels, UpgradeType.UPGRADE, dry_run, target, {**others, **levels})


@command.command("downgrade")
@_change_options
@click.option(
    "--unsafe", is_flag=True, help="Allow a downgrade that loses metadata; not possible for metadata.version itself."
)
@target_options
@click.pass_context
def downgrade(
    ctx: click.Context,
    release_version: str | None,
    metadata: str | None,
    features: tuple[str, ...],
    dry_run: bool,
    unsafe: bool,
    target: Target,
) -> None:
    """Downgrade feature levels; refused if metadata would be lost.

    \b
    Examples:
      millbeck feature downgrade --feature eligible.leader.replicas.version=0
    """
    from millbeck.client.admin.results import UpgradeType

    kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
    _change(ctx, levels_of(ctx, release_version or metadata, features), kind, dry_run, target)


@command.command("disable")
@click.option(
    "-f",
    "--feature",
    "features",
    multiple=True,
    required=True,
    metavar="NAME",
    help="The feature to disable; can be repeated.",
)
@click.option("--unsafe", is_flag=True, help="Disable the features even if metadata is lost.")
@click.option("--dry-run", is_flag=True, help="Only print what would change.")
@target_options
@click.pass_context
def disable(ctx: click.Context, features: tuple[str, ...], unsafe: bool, dry_run: bool, target: Target) -> None:
    """Disable features: set them to level 0.

    \b
    Examples:
      millbeck feature disable --feature eligible.leader.replicas.version
    """
    from millbeck.client.admin.results import UpgradeType

    kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
    _change(ctx, dict.fromkeys(features, 0), kind, dry_run, target)


@command.command("version-mapping")
@click.option("-r", "--release-version", metavar="RELEASE", help="A release such as 4.3-IV0; default: the newest.")
@stream_output_option
@_target_is_not_asked
@click.pass_context
def version_mapping(ctx: click.Context, release_version: str | None, output: str) -> None:
    """Show the feature levels of a release. Does not connect to a cluster.

    \b
    Examples:
      millbeck feature version-mapping
      millbeck feature version-mapping --release-version 4.0-IV3 --output json
    """
    from millbeck.metadata.features import LATEST_METADATA_VERSION, metadata_version_of, release_name

    try:
        level = LATEST_METADATA_VERSION if release_version is None else metadata_version_of(release_version)
    except ValueError as error:
        raise click.UsageError(f"--release-version: {error}", ctx) from error
    levels = mapped_levels(level)
    if output != TEXT:
        click.echo(document({"release": release_name(level), "levels": {METADATA_VERSION: level, **levels}}, output))
        return
    click.echo(f"{METADATA_VERSION}={level} ({release_name(level)})")
    if kafka_tool() is not None:
        levels = dict(sorted(levels.items(), key=lambda item: _KAFKA_ORDER.index(item[0])))
    for name, number in levels.items():
        click.echo(f"{name}={number}")


@command.command("feature-dependencies")
@click.option(
    "-f",
    "--feature",
    "features",
    multiple=True,
    required=True,
    metavar="NAME=LEVEL",
    help="Feature and level; can be repeated.",
)
@_target_is_not_asked
@click.pass_context
def feature_dependencies(ctx: click.Context, features: tuple[str, ...]) -> None:
    """Show the other features on which a feature level depends. Does not connect to a cluster.

    \b
    Examples:
      millbeck feature feature-dependencies --feature eligible.leader.replicas.version=1
    """
    for name, level in levels_of(ctx, None, features).items():
        try:
            click.echo("\n".join(dependencies_shown(name, level)))
        except ValueError as error:
            raise click.ClickException(str(error)) from error


def mapped_levels(metadata_version: int) -> dict[str, int]:
    """The level of every other feature at a ``metadata.version``, by name; 0 for features not in use."""
    from millbeck.metadata.features import KRAFT_VERSION, SUPPORTED_FEATURES, VOTERS_IN_LOG_FROM

    levels = release_levels(metadata_version) | {KRAFT_VERSION: int(metadata_version >= VOTERS_IN_LOG_FROM)}
    return {name: levels.get(name, 0) for name in sorted(SUPPORTED_FEATURES) if name != METADATA_VERSION}


def dependencies_shown(name: str, level: int) -> list[str]:
    """The dependencies in the words of Kafka's tool; raises ValueError for an unknown feature or level."""
    from millbeck.metadata.features import DEPENDENCIES, SUPPORTED_FEATURES, UNSTABLE_FEATURES, release_name

    known = {**SUPPORTED_FEATURES, **UNSTABLE_FEATURES}
    if name not in known:
        raise ValueError(f"Unknown feature: {name}")
    if level not in known[name]:
        raise ValueError(f"No feature:{name} with feature level {level}")
    if name == METADATA_VERSION:
        return [f"{name}={level} ({release_name(level)}) has no dependencies."]
    needed = DEPENDENCIES.get((name, level))
    if needed is None:
        return [f"{name}={level} has no dependencies."]
    return [f"{name}={level} requires:", f"    {METADATA_VERSION}={needed} ({release_name(needed)})"]


def feature_rows(found: FeatureDescription) -> list[dict[str, object]]:
    from millbeck.metadata.features import release_name

    def level(name: str, number: int) -> str:
        return release_name(number) if name == METADATA_VERSION and number > 0 else str(number)

    rows: list[dict[str, object]] = []
    for name in sorted({*found.supported, *found.finalized}):
        low, high = found.supported.get(name, (0, 0))
        finalized = found.finalized.get(name, (0, 0))[1]
        rows.append(
            {
                "feature": name,
                "supported_min": level(name, low),
                "supported_max": level(name, high),
                "finalized": level(name, finalized),
                "epoch": found.finalized_epoch,
            }
        )
    return rows


def levels_of(ctx: click.Context, release_version: str | None, features: Sequence[str]) -> dict[str, int]:
    """The requested level by feature."""
    from millbeck.metadata.features import metadata_version_of

    levels: dict[str, int] = {}
    try:
        if release_version is not None:
            levels[METADATA_VERSION] = metadata_version_of(release_version)
        for text in features:
            name, equals, level = text.partition("=")
            if not equals or not name or not (level.isascii() and level.isdigit()):
                raise ValueError(f"--feature: {text!r} is not NAME=LEVEL")
            if name in levels:
                raise ValueError(f"{name} is given twice")
            levels[name] = int(level)
    except ValueError as error:
        raise click.UsageError(str(error), ctx) from error
    if not levels:
        raise click.UsageError("no feature given: use --feature or --release-version", ctx)
    return levels


def release_levels(metadata_version: int) -> dict[str, int]:
    """The feature levels with which a directory is formatted for a release, without ``metadata.version`` itself."""
    from millbeck.metadata.features import FROM_THE_START

    return {name: level for name, level, begins_at in FROM_THE_START if begins_at <= metadata_version}


def _change(
    ctx: click.Context,
    levels: Mapping[str, int],
    kind: UpgradeType,
    is_dry_run: bool,
    target: Target,
    at_least: Mapping[str, int] | None = None,
) -> None:
    """Change feature levels. Features in ``at_least`` are raised to their level unless they have reached it already."""

    async def work(admin: Admin) -> None:
        from millbeck.cli.commands.topic import raise_failures
        from millbeck.client.admin.results import FeatureUpdate

        wanted = dict(levels)
        if at_least:
            found = (await admin.describe_features()).finalized
            wanted |= {name: level for name, level in at_least.items() if found.get(name, (0, 0))[1] < level}
        updates = {name: FeatureUpdate(level=level, upgrade_type=kind) for name, level in wanted.items()}
        outcomes = await admin.update_features(updates, validate_only=is_dry_run)
        for name, update in outcomes.succeeded.items():
            if kafka_tool() is not None:
                done = "can be" if is_dry_run else "was"
                click.echo(f"{name} {done} {_VERBS[kind.name]} to {update.level}.")
                continue
            click.echo(f"{name} {'would be' if is_dry_run else 'is'} at level {update.level}")
        raise_failures(outcomes.failed)

    run_admin(target, work)
