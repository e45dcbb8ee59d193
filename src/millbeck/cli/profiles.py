"""Profiles: named sets of client settings, each in a .properties file that only the user can read.

``~/.config/millbeck/profiles/NAME.properties`` holds the same settings as a ``--command-config`` file;
``~/.config/millbeck/profile`` names the current profile.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SUFFIX: Final = ".properties"
_OPEN_TO_OTHERS: Final = 0o077


@dataclass(frozen=True, slots=True)
class ProfileStore:
    """The profiles of a user. Every failure is a `click.ClickException` with a remedy."""

    directory: Path

    @classmethod
    def of_user(cls, environ: Mapping[str, str] = os.environ) -> ProfileStore:
        base = environ.get("XDG_CONFIG_HOME")
        return cls((Path(base) if base else Path.home() / ".config") / "millbeck")

    def names(self) -> list[str]:
        return sorted(path.name.removesuffix(_SUFFIX) for path in self._profiles.glob(f"*{_SUFFIX}"))

    def current(self) -> str | None:
        """The current profile, as set by `use`; None if there is none."""
        try:
            return self._current.read_text(encoding="utf-8").strip() or None
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise click.ClickException(f"profile: {self._current}: {error}") from error

    def path(self, name: str) -> Path:
        if _NAME.fullmatch(name) is None:
            raise click.UsageError(
                f"{name[:80]!r} is not a valid profile name: at most 64 letters, digits, '.', '_' and '-', "
                "the first a letter or digit"
            )
        return self._profiles / f"{name}{_SUFFIX}"

    def load(self, name: str) -> dict[str, str]:
        from millbeck.cli.settings import provided
        from millbeck.kernel.errors import InvalidConfig
        from millbeck.kernel.properties import parse_properties

        path = self.path(name)
        try:
            with open(path, encoding="utf-8") as file:
                if os.fstat(file.fileno()).st_mode & _OPEN_TO_OTHERS:
                    raise click.ClickException(f"profile {name}: other users can read {path}: run chmod 600 {path}")
                return provided(parse_properties(file.read()), os.environ)
        except FileNotFoundError:
            raise self._missing(name) from None
        except (OSError, UnicodeDecodeError, InvalidConfig) as error:
            raise click.ClickException(f"profile {name}: {path}: {error}") from error

    def save(self, name: str, settings: Mapping[str, str], *, replaces: bool) -> None:
        from millbeck.kernel.properties import properties_text

        path = self.path(name)
        if path.exists() and not replaces:
            raise click.ClickException(f"profile {name} exists already: use --force to replace it")
        _write_private(path, properties_text(settings))

    def use(self, name: str) -> None:
        if not self.path(name).exists():
            raise self._missing(name)
        _write_private(self._current, f"{name}\n")

    def use_none(self) -> None:
        self._current.unlink(missing_ok=True)

    def delete(self, name: str) -> None:
        try:
            self.path(name).unlink()
        except FileNotFoundError:
            raise self._missing(name) from None
        if self.current() == name:
            self.use_none()

    @property
    def _profiles(self) -> Path:
        return self.directory / "profiles"

    @property
    def _current(self) -> Path:
        return self.directory / "profile"

    def _missing(self, name: str) -> click.ClickException:
        from millbeck.cli.suggestions import did_you_mean

        hint = did_you_mean(name, self.names()) or f"; create it: millbeck profile create {name} -b HOST:PORT"
        return click.ClickException(f"there is no profile {name}{hint}")


def _write_private(path: Path, text: str) -> None:
    """Replace a file atomically by one that only the user can read."""
    staged = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        staged.unlink(missing_ok=True)
        with open(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        staged.replace(path)
    except OSError as error:
        raise click.ClickException(f"profile: {error.filename or path}: {error.strerror}") from error
