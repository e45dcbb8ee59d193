"""The changelog's headings, one source of the version, and no address of a package registry."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import millbeck
from tests.tidy.test_style import lines_matching

RELEASE = re.compile(r"(\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d")
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
REGISTRY = re.compile(
    r"https?://[\w.-]*(?:pypi|pythonhosted|maven|sonatype|npmjs|yarnpkg|golang|docker|artifactory|nexus)[\w.-]*/(?!POM/)"
)
"""Maven's name for its own format looks like an address of one."""


def test_the_changelog_goes_by_release(root: Path) -> None:
    lines = (root / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    first, *releases = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert first == "Unreleased"
    found = [RELEASE.fullmatch(heading) for heading in releases]
    assert None not in found, releases
    versions = [match[1] for match in found if match]
    assert versions == sorted(
        set(versions), key=lambda version: [int(part) for part in version.split(".")], reverse=True
    )
    assert {line.removeprefix("### ") for line in lines if line.startswith("### ")} <= set(KINDS)
    assert not versions or versions[0] == millbeck.__version__, (
        "the newest release has another version than the package"
    )


def test_each_line_of_the_changelog_is_in_an_entry(root: Path) -> None:
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8").partition("## Unreleased")[2]
    violations = [line for line in text.splitlines() if line and not line.startswith(("- ", "  ", "## ", "### "))]
    assert not violations, "\n".join(violations)


def test_the_version_is_in_one_place(root: Path) -> None:
    declared = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert declared["project"]["dynamic"] == ["version"]
    assert declared["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "millbeck.__version__"}


def test_no_address_of_a_package_registry(root: Path) -> None:
    """Packages come from wherever the machine's own settings of pip, Maven, Go and npm say."""
    violations = lines_matching(root, REGISTRY)
    assert not violations, "\n".join(violations)
    assert all(
        REGISTRY.search(f"https://{host}/") for host in ("pypi.org", "repo.maven.apache.org", "proxy.golang.org")
    )
