"""The stale check of ``tools/compiled.py`` on a made-up tree."""

from __future__ import annotations

import sysconfig
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[4] / "tools" / "compiled.py"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


@pytest.fixture
def tool(tmp_path: Path) -> ModuleType:
    """The tool, looking at a tree with one kernel that was compiled."""
    spec = spec_from_file_location("compiled_under_test", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    kernels = tmp_path / "src" / "millbeck" / "records" / "kernels"
    kernels.mkdir(parents=True)
    module.ROOT, module.KERNELS = tmp_path, kernels
    module.BUILD, module.RECORD = tmp_path / "build", tmp_path / "build" / "kernels.json"
    (kernels / "__init__.py").write_text("")
    (kernels / "walk.py").write_text("one = 1\n")
    (kernels / f"walk{SUFFIX}").write_bytes(b"loader")
    (tmp_path / "src" / f"millbeck_kernels__mypyc{SUFFIX}").write_bytes(b"library")
    module.record_build()
    return module


def test_a_fresh_build_is_fine(tool: ModuleType) -> None:
    assert tool.problems() == []
    assert tool.check() == 0


def test_an_edited_source_is_noticed(tool: ModuleType) -> None:
    (tool.KERNELS / "walk.py").write_text("one = 2\n")
    assert "walk.py" in "".join(tool.problems())
    assert tool.check() == 1


def test_a_new_source_is_noticed(tool: ModuleType) -> None:
    (tool.KERNELS / "more.py").write_text("")
    assert "more.py" in "".join(tool.problems())


def test_an_extension_from_elsewhere_is_noticed(tool: ModuleType) -> None:
    (tool.KERNELS / f"walk{SUFFIX}").write_bytes(b"another")
    assert f"walk{SUFFIX}" in "".join(tool.problems())


def test_a_missing_library_is_noticed(tool: ModuleType) -> None:
    (tool.ROOT / "src" / f"millbeck_kernels__mypyc{SUFFIX}").unlink()
    assert len(tool.problems()) == 1


def test_extensions_without_a_record_are_noticed(tool: ModuleType) -> None:
    tool.RECORD.unlink()
    assert tool.check() == 1


def test_no_extensions_at_all_is_fine(tool: ModuleType) -> None:
    tool.clean()
    assert tool.built() == []
    assert tool.check() == 0


def test_the_packages_own_init_is_not_a_kernel(tool: ModuleType) -> None:
    assert [path.name for path in tool.sources()] == ["walk.py"]
