"""Pipeline files: what they say, and what is wrong with those that say it badly."""

from __future__ import annotations

from pathlib import Path

import pytest

from millbeck.pipeline.errors import DefinitionError
from millbeck.pipeline.running.definition import load

STEPS = '[source]\ntopic = "a"\n[sink]\ntopic = "b"\n'


def _file(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text)
    return path


def test_a_python_file_names_its_settings_and_builds(tmp_path: Path) -> None:
    text = (
        'PIPELINE = {"delivery": "at_least_once", "options": {"kafka.client.rack": "r1", "maxOffsetsPerTrigger": 5}}\n'
    )
    definition = load(_file(tmp_path, "revenue.py", text + "def build(topology):\n    topology.append('built')\n"))
    built: list[str] = []
    definition.build(built)  # type: ignore[arg-type]
    assert built == ["built"]
    assert definition.settings.name == "revenue"
    assert definition.settings.delivery == "at_least_once"
    assert definition.settings.options == {"kafka.client.rack": "r1", "maxOffsetsPerTrigger": "5"}


def test_a_toml_file_has_settings_and_steps(tmp_path: Path) -> None:
    definition = load(_file(tmp_path, "copy.toml", 'name = "copied"\nbootstrap-servers = "h:1"\n' + STEPS))
    assert (definition.settings.name, definition.settings.bootstrap_servers) == ("copied", "h:1")


def test_the_command_line_goes_before_the_file(tmp_path: Path) -> None:
    definition = load(_file(tmp_path, "copy.toml", 'master = "local[2]"\n' + STEPS))
    changed = definition.with_settings(master="spark://h:7077", checkpoint=None)
    assert (changed.settings.master, changed.settings.checkpoint) == ("spark://h:7077", None)
    assert changed.settings.name == "copy"


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("p.py", "x = 1\n", "defines no function build"),
        ("p.py", "PIPELINE = 5\ndef build(topology): ...\n", "PIPELINE must be a dictionary"),
        ("p.py", "import nothing_of_the_sort\n", "nothing_of_the_sort"),
        ("p.py", "def build(topology)\n", "SyntaxError"),
        ("p.toml", "= 5", "Invalid"),
        ("p.toml", "nmae = 'x'\n" + STEPS, "unknown setting 'nmae'"),
        ("p.toml", "name = 5\n" + STEPS, "name is a text"),
        ("p.toml", "options = 'x'\n" + STEPS, "options is a table"),
        ("p.toml", "name = '../x'\n" + STEPS, "is not a valid name"),
        ("p.toml", "metrics = 'here'\n" + STEPS, "metrics must be 'off' or an address"),
        ("p.toml", "idle_after = 'soon'\n" + STEPS, "idle_after: 'soon' is not a length of time"),
        ("p.toml", "[source]\ntopic = 'a'\n", "[sink] needs a topic"),
        ("p.ini", "", "a .py file"),
    ],
)
def test_what_is_wrong_is_said_with_the_files_name(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    path = _file(tmp_path, name, text)
    with pytest.raises(DefinitionError) as raised:
        load(path)
    assert str(path) in str(raised.value)
    assert complaint in str(raised.value)


def test_idle_after_is_an_option_of_the_sources(tmp_path: Path) -> None:
    path = _file(tmp_path, "p.toml", "idle-after = '10 seconds'\noptions = { failOnDataLoss = 'false' }\n" + STEPS)
    assert load(path).settings.source_options == {"failOnDataLoss": "false", "idleAfter": "10000ms"}


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(DefinitionError, match="no such file"):
        load(Path("missing.py"))
