"""The stale check of ``tools/compiled.py`` on a made-up tree, and the package's own look at it."""

from __future__ import annotations

import os
import sysconfig
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from millbeck.compiled import NATIVE_STAMPS, is_stale

TOOL = Path(__file__).parents[2] / "tools" / "compiled.py"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
DECLARATION = Path(__file__).parents[2] / "src" / "millbeck" / "compiled.py"


@pytest.fixture
def tool(tmp_path: Path) -> Any:
    """The tool, looking at a tree with kernels and one module of the data path that were compiled."""
    spec = spec_from_file_location("compiled_under_test", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    package = tmp_path / "src" / "millbeck"
    kernels = package / "records" / "native"
    kernels.mkdir(parents=True)
    (package / "wire").mkdir()
    module.ROOT, module.BUILD = tmp_path, tmp_path / "build"
    module.RECORD = tmp_path / "build" / "kernels.json"
    declaration = DECLARATION.read_text()
    before, _, rest = declaration.partition("MODULES: Final = (")
    (package / "compiled.py").write_text(f'{before}MODULES: Final = ("millbeck.wire.varint",{rest[rest.index(")") :]}')
    (kernels / "__init__.py").write_text("")
    for source in (kernels / "walk.py", *module.column_sources(), package / "wire" / "varint.py"):
        source.write_text("one = 1\n")
        source.with_suffix(SUFFIX).write_bytes(b"loader")
    for library in (module.KERNELS_LIBRARY, module.COLUMNS_LIBRARY, module.PATH_LIBRARY):
        (tmp_path / "src" / f"{library}__mypyc{SUFFIX}").write_bytes(b"library")
    module.record_build()
    return module


@pytest.fixture
def package(tool: Any) -> Path:
    path: Path = tool.ROOT / "src" / "millbeck"
    return path


def test_a_fresh_build_is_fine(tool: Any) -> None:
    assert tool.problems() == []
    assert tool.check() == 0
    assert not is_stale(str(tool.ROOT))


@pytest.mark.parametrize("name", ["records/native/walk.py", "wire/varint.py"])
def test_an_edited_source_is_noticed(tool: Any, package: Path, name: str) -> None:
    (package / name).write_text("one = 22\n")
    assert name in "".join(tool.problems())
    assert tool.check() == 1


def test_the_package_runs_an_edited_data_path_from_its_sources(tool: Any, package: Path) -> None:
    (package / "wire" / "varint.py").write_text("one = 22\n")
    assert is_stale(str(tool.ROOT))


def test_the_package_keeps_the_data_path_when_only_a_kernel_was_edited(tool: Any, package: Path) -> None:
    assert not is_stale(str(tool.ROOT), NATIVE_STAMPS)
    (package / "records" / "native" / "walk.py").write_text("one = 22\n")
    assert not is_stale(str(tool.ROOT))
    assert is_stale(str(tool.ROOT), NATIVE_STAMPS), "the kernels run from their sources"


def test_other_times_and_the_same_contents_are_fresh_after_a_check(tool: Any, package: Path) -> None:
    os.utime(package / "wire" / "varint.py", ns=(1, 1))
    assert is_stale(str(tool.ROOT))
    assert tool.check() == 0
    assert not is_stale(str(tool.ROOT))


def test_a_module_that_is_gone_is_stale(tool: Any, package: Path) -> None:
    (package / "wire" / "varint.py").unlink()
    assert is_stale(str(tool.ROOT))


def test_a_new_kernel_is_noticed(tool: Any, package: Path) -> None:
    (package / "records" / "native" / "more.py").write_text("")
    assert "more.py" in "".join(tool.problems())


def test_an_extension_from_elsewhere_is_noticed(tool: Any, package: Path) -> None:
    (package / "wire" / f"varint{SUFFIX}").write_bytes(b"another")
    assert f"varint{SUFFIX}" in "".join(tool.problems())
    assert is_stale(str(tool.ROOT))


def test_a_missing_library_is_noticed(tool: Any) -> None:
    (tool.ROOT / "src" / f"millbeck_path__mypyc{SUFFIX}").unlink()
    assert len(tool.problems()) == 1
    assert is_stale(str(tool.ROOT))


def test_a_group_without_extensions_beside_one_that_has_some_is_noticed(tool: Any, package: Path) -> None:
    (package / "wire" / f"varint{SUFFIX}").unlink()
    (tool.ROOT / "src" / f"millbeck_path__mypyc{SUFFIX}").unlink()
    tool.record_build()
    assert tool.problems() == ["the group millbeck_path is not compiled, and another is"]


def test_extensions_without_a_record_are_noticed(tool: Any) -> None:
    tool.RECORD.unlink()
    assert tool.check() == 1


def test_no_extensions_at_all_is_fine(tool: Any) -> None:
    tool.clean()
    assert tool.built() == []
    assert tool.check() == 0
    assert not is_stale(str(tool.ROOT))
    assert not is_stale(str(tool.ROOT), NATIVE_STAMPS)


def test_the_packages_own_init_is_not_a_kernel(tool: Any) -> None:
    assert [path.name for path in tool.kernel_sources()] == ["walk.py"]


def test_ensure_builds_what_is_missing_or_stale(
    tool: Any, package: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    builds: list[str] = []

    def build() -> int:
        builds.append("build")
        return 0

    monkeypatch.setattr(tool, "build", build)
    assert tool.ensure() == 0
    assert builds == [], "everything is fresh"
    (package / "wire" / "varint.py").write_text("one = 22\n")
    assert tool.ensure() == 0
    assert len(builds) == 1
    tool.clean()
    assert tool.ensure() == 0
    assert len(builds) == 2


def test_ensure_goes_on_in_python_without_a_compiler(
    tool: Any, package: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def build() -> int:
        raise ImportError("no mypyc")

    monkeypatch.setattr(tool, "build", build)
    (package / "wire" / "varint.py").write_text("one = 22\n")
    assert tool.ensure() == 0
    assert "not compiled, the Python files run: no mypyc" in capsys.readouterr().out
    assert tool.built() == []
