"""Config providers: what variables become, what limits them, and that a missing value is an error."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.config_providers import (
    DIRECTORY_PROVIDER,
    ENVIRONMENT_PROVIDER,
    FILE_PROVIDER,
    has_variable,
    resolved_settings,
    without_providers,
)
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.option_kinds import ProvidedText
from millbeck.kernel.options import INT, PASSWORD, STRING, ConfigLayers, Option, resolve_option

FILES = {
    "/etc/secrets.properties": "password=s3cret\nspaced = a b\\\n  c\nempty=\n",
    "/run/secrets/key": "-----BEGIN\nline\n",
    "/srv/private.properties": "password=hers",
}
PROVIDERS = {
    "config.providers": "file, dir,env",
    "config.providers.file.class": FILE_PROVIDER,
    "config.providers.file.param.allowed.paths": "/etc,/run/",
    "config.providers.dir.class": DIRECTORY_PROVIDER,
    "config.providers.dir.param.allowed.paths": "/run/secrets",
    "config.providers.env.class": ENVIRONMENT_PROVIDER.rpartition(".")[2],
    "config.providers.env.param.allowlist.pattern": "APP_.*",
}


def read_text(path: str) -> str:
    if path not in FILES:
        raise FileNotFoundError(2, "No such file or directory")
    return FILES[path]


def resolved(text: str, **changed: str | None) -> str:
    given = {name: value for name, value in (PROVIDERS | changed).items() if value is not None}
    environment = {"APP_TOKEN": "t0ken", "HOME": "/srv"}
    return resolved_settings({**given, "x": text}, read_text=read_text, environment=environment)["x"]


REPLACED = {
    "a key of a file": ("${file:/etc/secrets.properties:password}", "s3cret"),
    "with Java's escapes": ("${file:/etc/secrets.properties:spaced}", "a bc"),
    "an empty value": ("${file:/etc/secrets.properties:empty}", ""),
    "a file of a directory": ("${dir:/run/secrets:key}", "-----BEGIN\nline\n"),
    "the directory with a slash": ("${dir:/run/secrets/:key}", "-----BEGIN\nline\n"),
    "the environment": ("${env:APP_TOKEN}", "t0ken"),
    "within a text, and twice": (
        'user="${env:APP_TOKEN}" password="${file:/etc/secrets.properties:password}";',
        'user="t0ken" password="s3cret";',
    ),
    "the path in another form": ("${file:/etc/../etc/./secrets.properties:password}", "s3cret"),
}


@pytest.mark.parametrize(("text", "value"), REPLACED.values(), ids=REPLACED.keys())
def test_a_variable_is_replaced(text: str, value: str) -> None:
    found = resolved(text)
    assert found == value
    assert isinstance(found, ProvidedText)
    assert "s3cret" not in repr(found)
    assert has_variable(text)


@pytest.mark.parametrize("text", ["plain", "${other:/etc/secrets.properties:password}", "${file}", "$file:a:b", ""])
def test_other_texts_stay(text: str) -> None:
    found = resolved(text)
    assert found == text
    assert not isinstance(found, ProvidedText)


def test_what_a_variable_becomes_is_not_looked_at_again() -> None:
    settings = {**PROVIDERS, "x": "${env:APP_TOKEN}"}
    environment = {"APP_TOKEN": "${file:/etc/secrets.properties:password}"}
    found = resolved_settings(settings, read_text=read_text, environment=environment)
    assert found["x"] == "${file:/etc/secrets.properties:password}"


def test_without_providers_nothing_is_replaced_and_with_them_they_are_gone() -> None:
    plain = {"x": "${env:APP_TOKEN}"}
    assert resolved_settings(plain, read_text=read_text, environment={"APP_TOKEN": "a"}) == plain
    assert set(resolved_settings({**PROVIDERS, "x": "1"}, read_text=read_text, environment={})) == {"x"}
    assert without_providers(PROVIDERS) == {}


REFUSED: dict[str, tuple[str, dict[str, str | None], str]] = {
    "a key that is not there": ("${file:/etc/secrets.properties:pasword}", {}, "has no such key"),
    "a file that is not there": ("${file:/etc/none:a}", {}, "cannot be read: No such file"),
    "a variable that is not there": ("${env:APP_NONE}", {}, "no such variable"),
    "a path that is not allowed": ("${file:/srv/private.properties:password}", {}, "does not allow this path"),
    "out of a path that is": ("${file:/etc/../srv/private.properties:password}", {}, "does not allow this path"),
    "a path that begins alike": ("${file:/etcetera:a}", {}, "does not allow this path"),
    "a name that is not allowed": ("${env:HOME}", {}, "does not allow this name"),
    "a file of another directory": ("${dir:/run/secrets:../../etc/secrets.properties}", {}, "name of a file"),
    "the directory itself": ("${dir:/run/secrets:..}", {}, "name of a file"),
    "no path": ("${file:password}", {}, "a path and a key are needed"),
    "no key": ("${file:/etc/secrets.properties:}", {}, "a path and a key are needed"),
    "a path in the environment": ("${env:/etc:APP_TOKEN}", {}, "has no path"),
    "no class": ("x", {"config.providers.env.class": None}, "config.providers.env.class: not set"),
    "another class": ("x", {"config.providers.env.class": "com.x.Vault"}, "com.x.Vault: one of"),
    "a relative path": ("x", {"config.providers.file.param.allowed.paths": "etc"}, "not an absolute path"),
    "no pattern": ("x", {"config.providers.env.param.allowlist.pattern": "("}, "not a regular expression"),
}


@pytest.mark.parametrize(("text", "changed", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(text: str, changed: dict[str, str | None], reason: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        resolved(text, **changed)
    assert reason in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "hers" not in str(caught.value)


def test_without_limits_every_path_and_name_is_allowed() -> None:
    unlimited = {
        "config.providers.file.param.allowed.paths": None,
        "config.providers.env.param.allowlist.pattern": None,
    }
    assert resolved("${file:/srv/private.properties:password}", **unlimited) == "hers"
    assert resolved("${env:HOME}", **unlimited) == "/srv"


def test_a_file_is_read_once() -> None:
    read: list[str] = []

    def counted(path: str) -> str:
        read.append(path)
        return read_text(path)

    variable = "${file:/etc/secrets.properties:password}"
    resolved_settings({**PROVIDERS, "x": variable * 3, "y": variable}, read_text=counted, environment={})
    assert len(read) == 1


def test_a_provided_value_is_not_shown_whatever_the_setting_is() -> None:
    number = Option("x", INT, 1, None, "A number.")
    text = Option("x", STRING, None, None, "A text.")
    secret = Option("x", PASSWORD, None, None, "A password.")
    provided = ConfigLayers(static={"x": ProvidedText("7")})
    declarations: list[Option[Any]] = [number, text, secret]
    for declared in declarations:
        found = resolve_option(declared, provided)
        assert found.is_hidden
        assert found.synonyms[0].text is None
    assert not resolve_option(number, ConfigLayers(static={"x": "7"})).is_hidden
    with pytest.raises(InvalidConfig, match=r"Invalid value \[hidden\] for configuration x"):
        number.parse(ProvidedText("s3cret"))
