"""Writes docs/generated from what the code declares: settings, APIs, errors, metrics, commands; and lists decisions.

python -m tools.docs            write the pages
python -m tools.docs --check    only say whether they are up to date; exit code 1 when they are not
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "generated"
_DECISION = re.compile(
    r"# (?P<number>\d+)\. (?P<title>.+)\n\nDate: (?P<date>\d{4}-\d\d-\d\d)\. "
    r"Status: (?P<status>proposed|accepted|rejected|superseded by \d+)\.\n"
)
NOTE = "Generated from the source by `make docs`; changes made here are lost."


def main() -> None:
    os.environ["MILLBECK_PURE"] = "1"  # compiled functions have neither signatures nor docstrings
    is_check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not is_check:
        sys.exit(f"usage: {sys.argv[0]} [--check]")
    stale = [name for name, text in pages().items() if current(name) != text]
    if is_check:
        if stale:
            sys.exit(f"stale, run `make docs`: {', '.join(stale)}")
        return
    PAGES.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")
    print(f"docs/generated: {len(stale)} of {len(WRITERS)} pages changed")


def pages() -> dict[str, str]:
    """Every page by its file's name."""
    return {name: "\n".join(_without_double_blanks(writer())) + "\n" for name, writer in WRITERS.items()}


def current(name: str) -> str | None:
    path = PAGES / name
    return path.read_text(encoding="utf-8") if path.exists() else None


def _without_double_blanks(lines: Iterable[str]) -> Iterator[str]:
    previous = ""
    for line in lines:
        if line or previous:
            yield line
        previous = line


# settings


def configuration() -> Iterator[str]:
    from millbeck.client.admin import AdminConfig
    from millbeck.client.consumer import ConsumerConfig
    from millbeck.client.producer import ProducerConfig
    from millbeck.client.schemas.settings import SerdeConfig
    from millbeck.client.share.config import ShareConsumerConfig
    from millbeck.pipeline.connect.worker.config import WorkerConfig
    from millbeck.registry.rest.config import RegistryConfig
    from millbeck.server.config import BROKER_OPTIONS, GROUP_OPTIONS
    from millbeck.storage.config import TOPIC_OPTIONS

    yield from ("# Settings", "", NOTE, "")
    yield from (
        "Names, types and defaults are Kafka's. Brokers read `server.properties`, then `KAFKA_…` variables, then "
        "`--set`; the later wins. *Change* says how a broker setting can be changed while brokers run: not at all "
        "(a dash), for one broker, or for the whole cluster.",
        "",
    )
    for title in ("Topics", "Brokers", "Groups", "Clients", "Schema registry", "Connect workers"):
        yield f"- [{title}](#{title.lower().replace(' ', '-')})"
    yield from (
        "",
        "## Topics",
        "",
        "Set with `millbeck topic create --config` and `millbeck config alter --topic`.",
        "",
    )
    for section in TOPIC_OPTIONS.sections:
        yield from _options_table(section.options, has_default_of_brokers=True)
    yield from ("", "## Brokers", "")
    for section in BROKER_OPTIONS.sections:
        yield from (f"### {_title(section)}", "", _about(section), "")
        yield from _options_table(section.options)
    yield from ("", "## Groups", "", "Set with `millbeck config alter --group`.", "")
    for section in GROUP_OPTIONS.sections:
        yield from (f"### {_title(section)}", "", _about(section), "")
        yield from _options_table(section.options)
    yield from ("", "## Clients", "")
    common = {option.name for option in AdminConfig.options}
    yield from ("### Every client", "")
    yield from _options_table(AdminConfig.options)
    sections = (("Producers", ProducerConfig), ("Consumers", ConsumerConfig), ("Share consumers", ShareConsumerConfig))
    for title, section in sections:
        yield from ("", f"### {title}", "")
        yield from _options_table([option for option in section.options if option.name not in common])
    yield from ("", "### Serializers with a schema registry", "")
    yield from _options_table(SerdeConfig.options)
    yield from (
        "",
        "## Schema registry",
        "",
        "Of `millbeck registry start`. `kafkastore.*` beside these are settings of a client, and `ssl.*` are of its "
        "listener, as of a client.",
        "",
    )
    yield from _options_table(RegistryConfig.options)
    yield from (
        "",
        "## Connect workers",
        "",
        "Of `millbeck connect worker` and `millbeck connect standalone`. Settings of a client beside these are those "
        "of all clients of the worker, `producer.*` and `consumer.*` those of tasks, `spark.*` those of the session.",
        "",
    )
    yield from _options_table(WorkerConfig.options)


def _options_table(options: Iterable[Any], *, has_default_of_brokers: bool = False) -> Iterator[str]:
    from millbeck.kernel.options import Scope, Update

    shown = [option for option in options if not option.internal]
    has_changes = any(option.scope is Scope.BROKER for option in shown)
    headers = ["Name", "Type", "Default", "Values"]
    headers += ["Default of brokers"] if has_default_of_brokers else []
    headers += ["Change"] if has_changes else []
    changes = {Update.READ_ONLY: "-", Update.PER_BROKER: "broker", Update.CLUSTER_WIDE: "cluster"}
    rows = []
    for option in sorted(shown, key=lambda each: str(each.name)):
        row = [f"`{option.name}`", str(option.kind), _default(option), _cell(str(option.valid or ""))]
        row += [", ".join(f"`{each.name}`" for each in option.synonyms)] if has_default_of_brokers else []
        row += [changes[option.update]] if has_changes else []
        rows.append([*row, _cell(option.doc)])
    yield from _table([*headers, "Meaning"], rows)
    yield ""


def _default(option: Any) -> str:
    from millbeck.kernel.options import REQUIRED

    if option.default is REQUIRED:
        return "required"
    text = option.default_text
    return "null" if text is None else "empty" if text == "" else f"`{_cell(text)}`"


def _title(section: type) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", section.__name__.removesuffix("Options")).split()
    return " ".join([words[0], *(word.lower() for word in words[1:])])


def _about(section: type) -> str:
    """The section's own words, or else its module's first sentence."""
    text = section.__doc__ or (sys.modules[section.__module__].__doc__ or "").split("\n\n")[0]
    return " ".join(text.split()).replace("``", "`")


# the protocol


def protocol() -> Iterator[str]:
    from millbeck.server.requests.routes import CONTROLLER_ROUTES, ROUTES
    from millbeck.wire.api_keys import APIS

    served = sorted({*ROUTES, *CONTROLLER_ROUTES}, key=lambda route: (route.api_key, route not in ROUTES))
    yield from ("# Protocol", "", NOTE, "", "## APIs served", "")
    rows = []
    for route in served:
        advertised = "" if route.advertised_min == route.min_version else f", advertised from {route.advertised_min}"
        versions = f"{route.min_version} to {route.max_version}{advertised}"
        whose = [name for name, routes in (("brokers", ROUTES), ("controllers", CONTROLLER_ROUTES)) if route in routes]
        link = f"[{_family(route)}](#{_family(route)})"
        rows.append([str(route.api_key), APIS[route.api_key].name, versions, " and ".join(whose), link])
    yield from _table(["Key", "API", "Versions", "Listeners of", "Behaviour"], rows)
    yield from ("", "## Behaviour", "")
    for family, text in sorted({_family(route): _module_doc(route) for route in served}.items()):
        yield from (f"### {family}", "", *_handler_lines(text), "")
    yield from ("## APIs known and not served", "", "They are not in the answer to ApiVersions, so clients do without.")
    missing = [api for key, api in APIS.items() if key not in {route.api_key for route in served}]
    yield from ("", *_table(["Key", "API"], [[str(api.key), api.name] for api in missing]))


def acls() -> Iterator[str]:
    from millbeck.server.requests.routes import CONTROLLER_ROUTES, ROUTES
    from millbeck.wire.api_keys import APIS

    yield from ("# ACLs that requests need", "", NOTE, "")
    yield from (
        "READ, WRITE, DELETE and ALTER include DESCRIBE, and ALTER_CONFIGS includes DESCRIBE_CONFIGS, in an ACL that "
        "allows. All lines of a request are needed; within a line one of several is enough. If an authorization is "
        "denied, the client gets the [error](errors.md) in the last column, or if there is none that of the resource: "
        "TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED or "
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED. `millbeck acl explain --request NAME` shows for one principal what is "
        "missing.",
        "",
    )
    rows = []
    for route in sorted({*ROUTES, *CONTROLLER_ROUTES}, key=lambda route: (route.api_key, route not in ROUTES)):
        name = APIS[route.api_key].name + ("" if route in ROUTES else " (controllers)")
        for position, need in enumerate(route.needs):
            rows.append([*(["", ""] if position else [str(route.api_key), name]), *_need(need)])
        if not route.needs:
            rows.append([str(route.api_key), name, "nothing", "", ""])
    yield from _table(["Key", "API", "Needs", "When", "When denied"], rows)


def _need(need: Any) -> tuple[str, str, str]:
    each = [(one, f"{one.operation.name} on {one.resource_type.name}") for one in (need, *need.alternatives)]
    texts = [f"{text} ({one.when})" if one.when and need.alternatives else text for one, text in each]
    return " or ".join(texts), "" if need.alternatives else need.when, need.denied


def _family(route: Any) -> str:
    """``...handlers.log_dirs`` is ``log-dirs``, ``...server.fetch.handler`` is ``fetch``."""
    name = route.run.__module__.removesuffix(".handler").rpartition(".")[2]
    return str(name.replace("_", "-"))


def _module_doc(route: Any) -> str:
    return sys.modules[route.run.__module__].__doc__ or ""


def _handler_lines(text: str) -> Iterator[str]:
    """A handler's docstring as Markdown: its lists get headings in bold."""
    for line in text.strip().replace("``", "`").splitlines():
        if line.strip() in ("Behaviour", "Versions"):
            yield from ("", f"**{line.strip()}**", "")
        else:
            yield line


# errors


def errors() -> Iterator[str]:
    from millbeck.kernel.errors import by_code

    yield from (
        "# Errors",
        "",
        NOTE,
        "",
        "Codes and names are Kafka's. A client may try again after a retriable one.",
        "",
    )
    rows = [
        [
            str(code),
            f"`{error.kafka_name}`",
            "yes" if error.retriable else "",
            _cell(" ".join((error.__doc__ or "").split())),
        ]
        for code, error in sorted(by_code.items())
    ]
    yield from _table(["Code", "Name", "Retriable", "Meaning"], rows)


# metrics


def metrics() -> Iterator[str]:
    yield from ("# Metrics", "", NOTE, "")
    yield from (
        "Served as Prometheus text under `/metrics`, by default on port 9404. Names that begin with `kafka_` are those "
        "that dashboards for Kafka use; a summary has a `quantile` label, `_count` and `_sum`.",
        "",
    )
    yield from _metrics_table(_declared_metrics())
    yield from ("", "## Pipelines", "")
    yield from ("Served by each `millbeck pipeline run` at the address that `millbeck pipeline status` tells.", "")
    yield from _metrics_table(_pipeline_metrics())


def _metrics_table(declared: Iterable[Any]) -> Iterator[str]:
    rows = [
        [f"`{each.name}`", each.kind.value, ", ".join(f"`{label}`" for label in each.labels), _cell(each.help)]
        for each in sorted(declared, key=lambda each: str(each.name))
    ]
    yield from _table(["Name", "Type", "Labels", "Meaning"], rows)


def _pipeline_metrics() -> list[Any]:
    from millbeck.pipeline.running.metrics import PipelineMetrics

    metrics = PipelineMetrics("any", restarts=lambda: 0, is_running=lambda: False)
    return [each for each in metrics.registry.declarations if each.name.startswith("millbeck_pipeline_")]


def _declared_metrics() -> list[Any]:
    """All metrics of a node, which is run in the simulator for a moment to have them declared."""
    from millbeck.kernel.environment import Environment
    from millbeck.server.config import NodeConfig
    from millbeck.server.local.embedded import embedded_settings
    from millbeck.server.local.formatting import format_directories
    from millbeck.server.node import Node
    from millbeck.simulation import World

    async def run(environment: Environment) -> list[Any]:
        config = NodeConfig(embedded_settings("/logs", host="harness", port=9092, metrics_port=9404))
        format_directories(environment, config)
        node = Node(environment, config)
        await node.start()
        declared = node.registry.declarations
        await node.stop()
        return declared

    return World(seed=1).run(run, limit_s=60)


# commands


def commands() -> Iterator[str]:
    """Written from the parameters, not with click's own help, whose form changes from release to release."""
    import click

    from millbeck.cli.main import COMMANDS, cli

    yield from ("# Commands", "", NOTE, "")
    yield from (
        "`millbeck COMMAND --help` shows the same. Kafka's spellings of flags are listed where they differ.",
        "",
    )
    context = click.Context(cli, info_name="millbeck")
    names = cli.list_commands(context)
    yield from (f"- [millbeck {name}](#millbeck-{name}): {COMMANDS[name][1]}" for name in names)
    for name in names:
        command = cli.get_command(context, name)
        assert command is not None
        yield from _command(command, f"millbeck {name}", "##")


def _command(command: Any, path: str, heading: str) -> Iterator[str]:
    import click

    text, _, examples = cleandoc(command.help or "").partition("\b\nExamples:\n")
    yield from ("", f"{heading} {path}", "", *(" ".join(part.split()) for part in text.strip().split("\n\n")), "")
    if examples:
        yield from ("```sh", *(line.strip() for line in examples.strip().splitlines()), "```", "")
    if isinstance(command, click.Group):
        for name, verb in sorted(command.commands.items()):
            yield from _command(verb, f"{path} {name}", f"{heading}#")
        return
    arguments = [
        each.make_metavar(click.Context(command)) for each in command.params if isinstance(each, click.Argument)
    ]
    if arguments:
        yield from (f"Arguments: `{' '.join(arguments)}`", "")
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    if options:
        yield from _table(["Option", "Value", "Default", "Meaning"], [_option_row(each) for each in options])


def _option_row(option: Any) -> list[str]:
    import click

    names = " ".join(f"`{name}`" for name in option.opts)
    if option.is_flag:
        value = ""
    elif isinstance(option.type, click.Choice):
        value = ", ".join(option.type.choices)
    else:
        value = option.metavar or option.type.name.removesuffix(" range")
    shown = option.default if isinstance(option.default, str | int | float) and not option.is_flag else None
    default = "" if shown in (None, "") or shown == -1.0 else f"`{shown}`"
    if option.required:
        default = "required"
    environment = f" (or `{option.envvar}`)" if option.envvar else ""
    return [names, _cell(f"`{value}`" if value else ""), default, _cell(f"{option.help}{environment}")]


# decisions


def decisions() -> Iterator[str]:
    """The pages of docs/adr with their dates and states."""
    yield "# Decisions"
    yield ""
    yield NOTE
    yield ""
    rows = []
    for path in sorted((ROOT / "docs" / "adr").glob("[0-9]*.md")):
        found = _DECISION.match(path.read_text(encoding="utf-8"))
        if found is None or int(found["number"]) != int(path.name[:4]):
            sys.exit(f"docs/adr/{path.name} must begin like other pages; docs/adr/README.md says how")
        rows.append([f"[{found['number']}](../adr/{path.name})", found["title"], found["date"], found["status"]])
    yield from _table(["", "decision", "date", "status"], rows)


# modules


def modules() -> Iterator[str]:
    """The file map: what each file owns, in the first sentence of its docstring."""
    yield "# Files"
    yield ""
    yield NOTE
    packages: dict[str, list[list[str]]] = {}
    for path in sorted((ROOT / "src" / "millbeck").rglob("*.py")):
        name = path.relative_to(ROOT / "src" / "millbeck")
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if doc and "messages" not in name.parts:
            first = doc.split("\n\n")[0]
            packages.setdefault(name.parts[0], []).append([f"`{name}`", _cell(first)])
    for package, rows in packages.items():
        yield ""
        yield f"## {package}"
        yield ""
        yield from _table(["file", "owns"], rows)


# Markdown


def _table(headers: list[str], rows: Iterable[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headers)} |"
    yield f"|{'---|' * len(headers)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")


def java_settings() -> Iterator[str]:
    from millbeck.client.admin import AdminConfig
    from millbeck.client.consumer.config import ConsumerConfig
    from millbeck.client.foreign_keys import ASKS_FOR_NOTHING, java_settings, reason_of
    from millbeck.client.producer.config import ProducerConfig
    from millbeck.client.share.config import ShareConsumerConfig
    from millbeck.kernel.options import REQUIRED

    sections = {
        "producer": ProducerConfig,
        "consumer": ConsumerConfig,
        "share consumer": ShareConsumerConfig,
        "admin": AdminConfig,
    }
    declared = {kind: {known.name: known for known in section.options} for kind, section in sections.items()}
    yield from ("# The settings of Kafka's Java clients", "", NOTE, "")
    yield (
        "Every setting of Apache Kafka's Java producer, consumer, share consumer and admin client, and what the Python "
        "clients do with it. What they do not have is refused, unless the value asks for what happens anyway."
    )
    yield from ("", "| setting | clients | default here, or why it is refused |", "|---|---|---|")
    for name in java_settings():
        kinds = [kind for kind, options in declared.items() if name in options]
        if kinds and declared[kinds[0]][name].default is REQUIRED:
            yield f"| `{name}` | all | none: it must be given |"
            continue
        if kinds:
            default = declared[kinds[0]][name].default
            shown = ",".join(map(str, default)) if isinstance(default, tuple) else default
            text = "" if shown in (None, "") else f"`{str(shown).lower() if isinstance(shown, bool) else shown}`"
            yield f"| `{name}` | {'all' if len(kinds) == len(sections) else ', '.join(kinds)} | {text} |"
            continue
        accepted = [value for value in ASKS_FOR_NOTHING.get(name, ()) if value]
        but = f"; only {' or '.join(f'`{value}`' for value in accepted)} is accepted" if accepted else ""
        yield f"| `{name}` | none | {reason_of(name)}{but} |"


def connectors() -> Iterator[str]:
    from millbeck.pipeline.connect.connectors.declared import CONNECTORS, ConnectorKind

    yield from ("# Connectors", "", NOTE, "")
    yield "The settings that each connector has beside those of all. `millbeck connect plugins NAME` shows both."
    for each in sorted(CONNECTORS, key=lambda known: known.name.rpartition(".")[2]):
        yield from ("", f"## {each.name.rpartition('.')[2]}", "", each.doc, "")
        yield f"- Class: `{each.name}`; also {', '.join(f'`{name}`' for name in dict.fromkeys(each.short_names))}"
        if each.kind is ConnectorKind.SINK:
            yield f"- Delivery: {each.delivery.value}"
        if each.extra:
            yield f"- Needs: `pip install 'millbeck[{each.extra}]'`"
        yield ""
        rows = []
        for key in each.config_def:
            is_required = key.default_text is None and "REQUIRED" in str(key.default)
            default = "none: it must be given" if is_required else f"`{key.default_text}`" if key.default_text else ""
            allowed = _cell(key.check.allowed) if key.check is not None else ""
            rows.append([f"`{key.name}`", key.kind.name, default, allowed, _cell(key.doc)])
        yield from _table(["setting", "type", "default", "allowed", "meaning"], rows)


def client_reference() -> Iterator[str]:
    if str(ROOT) not in sys.path:  # when this file is run as a script
        sys.path.insert(0, str(ROOT))
    from tools.client_api import client_api

    return client_api(NOTE)


WRITERS: dict[str, Callable[[], Iterator[str]]] = {
    "acls.md": acls,
    "cli.md": commands,
    "client-api.md": client_reference,
    "configuration.md": configuration,
    "connectors.md": connectors,
    "decisions.md": decisions,
    "errors.md": errors,
    "java-client-settings.md": java_settings,
    "metrics.md": metrics,
    "modules.md": modules,
    "protocol.md": protocol,
}

if __name__ == "__main__":
    from millbeck import compiled

    # Extensions carry no docstrings.
    compiled.use_sources()
    main()
