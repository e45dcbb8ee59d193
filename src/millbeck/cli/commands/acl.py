"""``millbeck acl``: list, add and remove ACLs, keep them in a file, and explain what they allow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.completed_types import FILE
from millbeck.cli.connection_options import Target, run_admin, target_options
from millbeck.cli.output import TABLE, file_output_option, output_option, show, show_rows
from millbeck.cli.verbs import SubcommandGroup, is_kafka_style, kafka_tool

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.security.acls import AccessControlEntry

from millbeck.cli.acls.cluster import authorizer_settings, changes_to, described
from millbeck.cli.acls.options import acl_options, pattern_option, resource_options, subject_options
from millbeck.cli.acls.printing import best, count, print_as_kafka, print_changes, print_difference, print_explanations

FLAGS: Final = {"--list": "list", "--add": "add", "--remove": "remove"}


@click.group(cls=SubcommandGroup, flags=FLAGS)
def command() -> None:
    """Show and change ACLs, and explain what they allow (Kafka's kafka-acls)."""


@command.command("list")
@resource_options
@pattern_option(with_filters=True)
@click.option(
    "--principal", multiple=True, metavar="TYPE:NAME", help="Show only ACLs of this principal; can be repeated."
)
@output_option
@target_options
@click.pass_context
def list_acls(ctx: click.Context, /, output: str, target: Target, principal: tuple[str, ...], **given: Any) -> None:
    """Show all ACLs, or those of some resources.

    \b
    Examples:
      millbeck acl list
      millbeck acl list --topic orders --pattern match
      millbeck acl list --principal User:alice --output json
    """
    from millbeck.cli.acls.options import named_resources, resource_filters
    from millbeck.cli.acls.words import entry_row, read_word
    from millbeck.security.acls import AclFilter
    from millbeck.security.authorizer import PatternType

    filters = resource_filters(named_resources(given), read_word(PatternType, given["pattern"])) or [AclFilter()]

    async def work(admin: Admin) -> None:
        found = [entry for entry in await described(admin, filters) if not principal or entry.principal in principal]
        if kafka_tool() is not None and principal:
            for each in principal:
                click.echo(f"ACLs for principal `{each}`")
                print_as_kafka("Current ACLs", [entry for entry in found if entry.principal == each])
        elif is_kafka_style(ctx) and output == TABLE:
            print_as_kafka("Current ACLs", found)
        else:
            show_rows(map(entry_row, found), output)

    run_admin(target, work)


@command.command("add")
@resource_options
@pattern_option(with_filters=False)
@subject_options
@click.option("--force", is_flag=True, hidden=True, expose_value=False)
@target_options
@click.pass_context
def add(ctx: click.Context, /, target: Target, **given: Any) -> None:
    """Create ACLs; ACLs that exist already are left unchanged.

    \b
    Examples:
      millbeck acl add --allow-principal User:alice --operation read --topic orders
      millbeck acl add --allow-principal User:app --producer --idempotent --topic orders- --pattern prefixed
      millbeck acl add --allow-principal User:app --consumer --topic orders --group billing
      millbeck acl add --deny-principal User:bob --deny-host 10.0.0.7 --topic '*'
    """
    options = acl_options(ctx, given)
    options.check(ctx)
    entries = options.entries()
    if not entries:
        raise click.UsageError("no principal given: --allow-principal or --deny-principal", ctx)

    async def work(admin: Admin) -> None:
        (await admin.create_acls(entries)).all()
        if is_kafka_style(ctx):
            print_as_kafka("Adding ACLs", entries)
        else:
            print_changes("+", entries)

    run_admin(target, work)


@command.command("remove")
@resource_options
@pattern_option(with_filters=True)
@subject_options
@click.option("--force", "--yes", "-y", "is_sure", is_flag=True, help="Do not ask.")
@target_options
@click.pass_context
def remove(ctx: click.Context, /, target: Target, is_sure: bool, **given: Any) -> None:
    """Delete the ACLs that the options describe, or without a principal every ACL of the resources.

    \b
    Examples:
      millbeck acl remove --allow-principal User:alice --operation read --topic orders
      millbeck acl remove --topic orders --yes
    """
    options = acl_options(ctx, given)
    options.check(ctx)
    filters = options.filters()

    async def work(admin: Admin) -> None:
        if not is_sure:
            there = await described(admin, filters)
            print_changes("-", there)
            if not there or not click.confirm(f"Delete {count(there)}?", default=False):
                click.echo("nothing was deleted")
                return
        outcomes = await admin.delete_acls(filters)
        deleted = list(dict.fromkeys(entry for entries in outcomes.all().values() for entry in entries))
        if kafka_tool() is not None:
            return
        if is_sure:
            print_changes("-", deleted)
        click.echo(f"deleted {count(deleted)}")

    run_admin(target, work)


@command.command("export")
@file_output_option
@target_options
def export(output: str, target: Target) -> None:
    """Print all ACLs as a file for `apply`, in YAML or JSON.

    \b
    Examples:
      millbeck acl export > acls.yaml
    """
    from millbeck.cli.acls.files import exported
    from millbeck.security.acls import AclFilter

    async def work(admin: Admin) -> None:
        show(exported(await admin.describe_acls(AclFilter())), output)

    run_admin(target, work)


@command.command("suggest")
@click.option(
    "--from-audit",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    type=FILE,
    help="The audit file to read; can be repeated.",
)
@click.option(
    "--principal", multiple=True, metavar="TYPE:NAME", help="Suggest only ACLs for this principal; can be repeated."
)
@click.option(
    "--prefix",
    multiple=True,
    metavar="TEXT",
    help="Suggest one ACL for all names that begin with this text; can be repeated.",
)
@click.option("--hosts", is_flag=True, help="Suggest ACLs for the denied addresses instead of all addresses.")
@file_output_option
def suggest(
    files: tuple[str, ...], principal: tuple[str, ...], prefix: tuple[str, ...], hosts: bool, output: str
) -> None:
    """Print the smallest ACLs that would have allowed the denied operations of an audit, as a file for `apply`.

    Use it for a cluster that gets its first ACLs: with millbeck.authorizer.dry.run=true everything is allowed, and the
    audit lists the operations that would have been denied. Review the suggestions before you apply them: they allow
    everything that clients have tried.

    \b
    Examples:
      millbeck acl suggest --from-audit audit.log > acls.yaml
      millbeck acl suggest --from-audit audit.log --principal User:app --prefix app-
    """
    from millbeck.cli.acls.files import exported
    from millbeck.cli.acls.suggestions import suggested
    from millbeck.cli.audit.selection import parse_events
    from millbeck.cli.audit.sources import lines_of_files, with_rotated

    events = [
        each
        for each in parse_events(lines_of_files(with_rotated(files)))
        if not principal or each.get("principal") in principal
    ]
    show(exported(suggested(events, prefix, hosts=hosts)), output)


@command.command("diff")
@click.argument("file", metavar="FILE", type=FILE)
@click.option("--prune", is_flag=True, help="Also show ACLs that are not in the file, which `apply --prune` deletes.")
@target_options
@click.pass_context
def diff(ctx: click.Context, file: str, prune: bool, target: Target) -> None:
    """Show what `apply` would change; exit code 1 if there are changes.

    \b
    Examples:
      millbeck acl diff acls.yaml
      millbeck acl diff acls.yaml --prune
    """
    from millbeck.cli.acls.files import read_acls

    wanted = read_acls(file)

    async def work(admin: Admin) -> None:
        changes = await changes_to(admin, wanted, prune)
        print_difference(changes)
        if changes.missing or changes.surplus:
            ctx.exit(1)

    run_admin(target, work)


@command.command("apply")
@click.argument("file", metavar="FILE", type=FILE)
@click.option("--prune", is_flag=True, help="Delete ACLs that are not in the file.")
@click.option("--dry-run", is_flag=True, help="Only print what would change.")
@target_options
def apply(file: str, prune: bool, dry_run: bool, target: Target) -> None:
    """Create the ACLs of a file, and with --prune delete all others. A second run changes nothing.

    Missing ACLs are created before any is deleted.

    \b
    Examples:
      millbeck acl apply acls.yaml --dry-run
      millbeck acl apply acls.yaml --prune
    """
    from millbeck.cli.acls.files import read_acls
    from millbeck.cli.acls.words import as_filter

    wanted = read_acls(file)

    async def work(admin: Admin) -> None:
        changes = await changes_to(admin, wanted, prune)
        print_difference(changes)
        if not dry_run:
            (await admin.create_acls(changes.missing)).all()
            (await admin.delete_acls(map(as_filter, changes.surplus))).all()

    run_admin(target, work)


def _question_options(function: Any) -> Any:
    for option in (
        click.option("--allow-everyone", is_flag=True, help="Decide as if allow.everyone.if.no.acl.found were true."),
        click.option(
            "--super-users", metavar="TYPE:NAME;…", help="The brokers' super.users; default: read from a broker."
        ),
    ):
        function = option(function)
    return function


@command.command("explain")
@click.option("--principal", required=True, metavar="TYPE:NAME", help="The principal, such as User:alice.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The client's address.")
@click.option("--operation", multiple=True, metavar="NAME", help="The operation: read, write, ...; can be repeated.")
@click.option(
    "--request",
    metavar="NAME",
    help="Check all operations that this request needs, such as Produce, Fetch or CreateTopics.",
)
@resource_options
@_question_options
@output_option
@target_options
@click.pass_context
def explain_decision(
    ctx: click.Context,
    /,
    principal: str,
    host: str,
    operation: tuple[str, ...],
    request: str | None,
    super_users: str | None,
    allow_everyone: bool,
    output: str,
    target: Target,
    **given: Any,
) -> None:
    """Show whether an operation is allowed, by which ACL, and the smallest ACL that would allow it.

    \b
    Examples:
      millbeck acl explain --principal User:alice --operation read --topic orders
      millbeck acl explain --principal User:app --request Produce --topic orders --transactional-id tx-1
    """
    from millbeck.cli.acls.explanations import explain, make_authorizer, summary
    from millbeck.cli.acls.options import named_resources
    from millbeck.cli.acls.questions import questions_of
    from millbeck.security.acls import AclFilter

    questions = questions_of(ctx, principal, host, operation, request, named_resources(given))

    async def work(admin: Admin) -> None:
        entries = await admin.describe_acls(AclFilter())
        users, everyone = await authorizer_settings(admin, super_users, allow_everyone)
        authorizer = make_authorizer(entries, users, allow_everyone=everyone)
        alternatives = [[explain(authorizer, entries, each) for each in either] for either in questions]
        if output != TABLE:
            show(summary(map(best, alternatives)), output)
        else:
            print_explanations(alternatives)

    run_admin(target, work)


@command.command("test")
@click.argument("file", metavar="FILE", type=FILE)
@click.option(
    "--acls", "acls_file", metavar="FILE", type=FILE, help="Decide by the ACLs of this file, without a cluster."
)
@_question_options
@target_options
@click.pass_context
def test(
    ctx: click.Context,
    file: str,
    acls_file: str | None,
    super_users: str | None,
    allow_everyone: bool,
    target: Target,
) -> None:
    """Run tests of what the ACLs allow and deny; exit code 1 if a test fails.

    \b
    The file has a list under the key tests, each with principal, operation, resource, name and allowed:
      tests:
      - {principal: User:alice, operation: read, resource: topic, name: orders, allowed: true}

    \b
    Examples:
      millbeck acl test acl-tests.yaml --acls acls.yaml
      millbeck acl test acl-tests.yaml
    """
    from millbeck.cli.acls.explanations import explain, make_authorizer
    from millbeck.cli.acls.files import read_acls, read_tests
    from millbeck.security.acls import AclFilter
    from millbeck.security.standard_authorizer import parse_super_users

    tests = read_tests(file)

    def check(entries: Iterable[AccessControlEntry], users: Iterable[str], everyone: bool) -> None:
        listed = list(entries)
        authorizer = make_authorizer(listed, users, allow_everyone=everyone)
        explained = [(each, explain(authorizer, listed, each.question)) for each in tests]
        wrong = [found for expected, found in explained if found.decision.is_allowed != expected.is_allowed]
        for each in wrong:
            click.echo("\n".join(each.lines()))
        click.echo(f"{len(tests) - len(wrong)} of {len(tests)} as expected")
        if wrong:
            ctx.exit(1)

    if acls_file is not None:
        check(read_acls(acls_file), parse_super_users(super_users or ""), allow_everyone)
        return

    async def work(admin: Admin) -> None:
        users, everyone = await authorizer_settings(admin, super_users, allow_everyone)
        check(await admin.describe_acls(AclFilter()), users, everyone)

    run_admin(target, work)
