"""``millbeck feature``: which levels of which features the cluster uses, and raising or lowering them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from millbeck.cli.connecting import Target, run_admin, target_options
from millbeck.cli.output import output_option, show_rows
from millbeck.cli.verbs import VerbGroup

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import FeatureDescription, UpgradeType

METADATA_VERSION = "metadata.version"


@click.group(cls=VerbGroup, flags={})
def command() -> None:
    """Feature levels: what Kafka's kafka-features does."""


@command.command("describe")
@output_option
@target_options
def describe(output: str, target: Target) -> None:
    """Show the levels that are supported and the one that is in use.

    \b
    Examples:
      millbeck feature describe
    """

    async def work(admin: Admin) -> None:
        show_rows(feature_rows(await admin.describe_features()), output)

    run_admin(target, work)


def _target_is_not_asked(function: click.decorators.FC) -> click.decorators.FC:
    """Kafka's tool insists on where the cluster is; here it may be said, as scripts do."""
    for name in ("--bootstrap-server", "--bootstrap-controller", "--command-config"):
        function = click.option(name, hidden=True, expose_value=False)(function)
    return function


def _change_options(function: click.decorators.FC) -> click.decorators.FC:
    for option in (
        click.option("--dry-run", is_flag=True, help="Only say what would happen."),
        click.option("-f", "--feature", "features", multiple=True, metavar="NAME=LEVEL", help="Can be repeated."),
        click.option(
            "-r",
            "--release-version",
            metavar="RELEASE",
            help="The metadata.version of a release, such as 4.3-IV0; to raise it, the other features' levels as well.",
        ),
        click.option("--metadata", metavar="RELEASE", help="The metadata.version of a release alone."),
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
    """Raise levels. Nodes that do not know a level can not be part of the cluster afterwards.

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
    "--unsafe", is_flag=True, help="Even where metadata is lost by it; metadata.version itself is never lowered so."
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
    """Lower levels, where nothing is lost by it.

    \b
    Examples:
      millbeck feature downgrade --feature eligible.leader.replicas.version=0
    """
    from millbeck.client.admin.results import UpgradeType

    kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
    _change(ctx, levels_of(ctx, release_version or metadata, features), kind, dry_run, target)


@command.command("disable")
@click.option("-f", "--feature", "features", multiple=True, required=True, metavar="NAME", help="Can be repeated.")
@click.option("--unsafe", is_flag=True, help="Even where metadata is lost by it.")
@click.option("--dry-run", is_flag=True, help="Only say what would happen.")
@target_options
@click.pass_context
def disable(ctx: click.Context, features: tuple[str, ...], unsafe: bool, dry_run: bool, target: Target) -> None:
    """Take features out of use: level 0.

    \b
    Examples:
      millbeck feature disable --feature eligible.leader.replicas.version
    """
    from millbeck.client.admin.results import UpgradeType

    kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
    _change(ctx, dict.fromkeys(features, 0), kind, dry_run, target)


@command.command("version-mapping")
@click.option("-r", "--release-version", metavar="RELEASE", help="Such as 4.3-IV0; the newest when not given.")
@_target_is_not_asked
@click.pass_context
def version_mapping(ctx: click.Context, release_version: str | None) -> None:
    """Show the levels of all features that belong to a release. No cluster is asked.

    \b
    Examples:
      millbeck feature version-mapping
      millbeck feature version-mapping --release-version 4.0-IV3
    """
    from millbeck.metadata.features import LATEST_METADATA_VERSION, metadata_version_of, release_of

    try:
        level = LATEST_METADATA_VERSION if release_version is None else metadata_version_of(release_version)
    except ValueError as error:
        raise click.UsageError(f"--release-version: {error}", ctx) from error
    click.echo(f"{METADATA_VERSION}={level} ({release_of(level)})")
    for name, number in mapped_levels(level).items():
        click.echo(f"{name}={number}")


@command.command("feature-dependencies")
@click.option(
    "-f", "--feature", "features", multiple=True, required=True, metavar="NAME=LEVEL", help="Can be repeated."
)
@_target_is_not_asked
@click.pass_context
def feature_dependencies(ctx: click.Context, features: tuple[str, ...]) -> None:
    """Show which levels of other features a level needs. No cluster is asked.

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
    """The level of every other feature at a ``metadata.version``, by name, those that are not in use at 0."""
    from millbeck.metadata.features import KRAFT_VERSION, SUPPORTED_FEATURES, VOTERS_IN_LOG_FROM

    levels = release_levels(metadata_version) | {KRAFT_VERSION: int(metadata_version >= VOTERS_IN_LOG_FROM)}
    return {name: levels.get(name, 0) for name in sorted(SUPPORTED_FEATURES) if name != METADATA_VERSION}


def dependencies_shown(name: str, level: int) -> list[str]:
    """In Kafka's words; raises ValueError for what is not known."""
    from millbeck.metadata.features import DEPENDENCIES, SUPPORTED_FEATURES, UNSTABLE_FEATURES, release_of

    known = {**SUPPORTED_FEATURES, **UNSTABLE_FEATURES}
    if name not in known:
        raise ValueError(f"Unknown feature: {name}")
    if level not in known[name]:
        raise ValueError(f"No feature:{name} with feature level {level}")
    if name == METADATA_VERSION:
        return [f"{name}={level} ({release_of(level)}) has no dependencies."]
    needed = DEPENDENCIES.get((name, level))
    if needed is None:
        return [f"{name}={level} has no dependencies."]
    return [f"{name}={level} requires:", f"    {METADATA_VERSION}={needed} ({release_of(needed)})"]


def feature_rows(found: FeatureDescription) -> list[dict[str, object]]:
    from millbeck.metadata.features import release_of

    def level(name: str, number: int) -> str:
        return release_of(number) if name == METADATA_VERSION and number > 0 else str(number)

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
    """What was asked for, by feature."""
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
                raise ValueError(f"{name} is asked for twice")
            levels[name] = int(level)
    except ValueError as error:
        raise click.UsageError(str(error), ctx) from error
    if not levels:
        raise click.UsageError("which feature? Use --feature or --release-version", ctx)
    return levels


def release_levels(metadata_version: int) -> dict[str, int]:
    """The levels that a new directory of a release begins with, without ``metadata.version`` itself."""
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
    """``at_least`` has further features, which are raised to a level unless they are there already."""

    async def work(admin: Admin) -> None:
        from millbeck.cli.topic import raise_failures
        from millbeck.client.admin.results import FeatureUpdate

        wanted = dict(levels)
        if at_least:
            found = (await admin.describe_features()).finalized
            wanted |= {name: level for name, level in at_least.items() if found.get(name, (0, 0))[1] < level}
        updates = {name: FeatureUpdate(level=level, upgrade_type=kind) for name, level in wanted.items()}
        outcomes = await admin.update_features(updates, validate_only=is_dry_run)
        for name, update in outcomes.succeeded.items():
            click.echo(f"{name} {'would be' if is_dry_run else 'is'} at level {update.level}")
        raise_failures(outcomes.failed)

    run_admin(target, work)
