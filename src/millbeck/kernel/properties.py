"""Settings as text: ``.properties`` files, ``KAFKA_...`` environment variables and ``key=value`` flags.

The file's grammar is Java's: ``#`` and ``!`` begin comment lines; a backslash at the end of a line continues it,
without the indentation of the next one; the key ends at the first unescaped ``=``, ``:`` or blank; ``\\t \\n \\r \\f``
and ``\\uXXXX`` are escapes, and a backslash before any other character is dropped. The last value of a repeated key is
used.

No I/O: callers pass the contents of the file and the environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from millbeck.kernel.errors import InvalidConfig

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANKS = " \t\f"
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE_OF_CONTROL = {control: letter for letter, control in _CONTROL_ESCAPES.items()}
_KEY_SPECIALS = re.compile(r"[\\=:#! \t\n\r\f]")
_VALUE_SPECIALS = re.compile(r"[\\\t\n\r\f]|\A ")

_PREFIXES = ("KAFKA_CFG_", "KAFKA_")
"""The prefixes of environment variables, in ascending precedence; a variable with the longer prefix is not read with
the shorter one."""

_NOT_SETTINGS = frozenset(
    {
        "KAFKA_CLASSPATH",
        "KAFKA_CLUSTER_ID",
        "KAFKA_DEBUG",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_HOME",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_KRAFT_CLUSTER_ID",
        "KAFKA_LOG4J_CMD_OPTS",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_OPTS",
        "KAFKA_PERFORMANCE_OPTS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_VERSION",
    }
)
"""Variables that scripts and container images use for other purposes."""

_UNDERSCORES = re.compile(r"_{1,3}")
_UNDERSCORE_MEANING = {"_": ".", "__": "_", "___": "-"}


def parse_properties(text: str) -> dict[str, str]:
    """The settings of a file. Raises `InvalidConfig` with the line number of a malformed escape."""
    settings: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key_match = _KEY.match(line)
        assert key_match is not None, "the pattern matches the empty text"
        separator = _SEPARATOR.match(line, key_match.end())
        assert separator is not None, "the pattern matches the empty text"
        key, value = key_match.group(), line[separator.end() :]
        settings[_unescaped(key, number)] = _unescaped(value, number)
    return settings


def properties_text(settings: Mapping[str, str]) -> str:
    """A file that `parse_properties` reads as these settings."""
    lines = (f"{_escaped(key, _KEY_SPECIALS)}={_escaped(value, _VALUE_SPECIALS)}\n" for key, value in settings.items())
    return "".join(lines)


def _escaped(text: str, specials: re.Pattern[str]) -> str:
    return specials.sub(lambda found: "\\" + _ESCAPE_OF_CONTROL.get(found[0], found[0]), text)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield every non-empty logical line: the number of its first line, and its text without leading blanks."""
    pieces: list[str] = []
    first_number = 0
    for number, natural in enumerate(_LINE_END.split(text), start=1):
        line = natural.lstrip(_BLANKS)
        if not pieces:
            if not line or line[0] in "#!":
                continue
            first_number = number
        trailing_backslashes = len(line) - len(line.rstrip("\\"))
        if trailing_backslashes % 2 == 1:
            pieces.append(line[:-1])
            continue
        yield first_number, "".join([*pieces, line])
        pieces = []
    if pieces:
        yield first_number, "".join(pieces)


def _unescaped(text: str, line_number: int) -> str:
    if "\\" not in text:
        return text

    def meaning(escape: re.Match[str]) -> str:
        code = escape[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        if code == "u":
            raise InvalidConfig(f"line {line_number}: \\u must be followed by four hexadecimal digits")
        return _CONTROL_ESCAPES.get(code, code)

    # Java writes a character above U+FFFF as two escapes; the UTF-16 codec joins them.
    try:
        return _ESCAPE.sub(meaning, text).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise InvalidConfig(f"line {line_number}: the \\u escape is an unpaired surrogate") from None


def settings_of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings in ``KAFKA_...`` variables: ``_`` means a dot, ``__`` an underscore, ``___`` a dash.

    ``KAFKA_CFG_...`` is an alias with lower precedence than the shorter form. System properties of Kafka in
    ``KAFKA_OPTS`` are settings as well.
    """
    settings = system_properties(environment)
    for prefix in _PREFIXES:
        for name in sorted(environment):
            if name in _NOT_SETTINGS or not name.startswith(prefix):
                continue
            if prefix == "KAFKA_" and name.startswith("KAFKA_CFG_"):
                continue
            key = setting_of_variable(name.removeprefix(prefix))
            if key:
                settings[key] = environment[name]
    return settings


def system_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """Kafka's own Java system properties among the arguments in ``KAFKA_OPTS``, such as
    ``-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=…``."""
    given = (word.removeprefix("-D").partition("=") for word in environment.get("KAFKA_OPTS", "").split())
    return {name: value for name, equals, value in given if equals and name.startswith("org.apache.kafka.")}


def setting_of_variable(name: str) -> str:
    """The setting of a variable, given without its prefix: ``LOG_RETENTION_MS`` is ``log.retention.ms``."""
    return _UNDERSCORES.sub(lambda run: _UNDERSCORE_MEANING[run[0]], name).lower()


def settings_of_flags(flags: Iterable[str]) -> dict[str, str]:
    """The settings of ``key=value`` flags. Raises `InvalidConfig` for a flag of another form."""
    settings: dict[str, str] = {}
    for flag in flags:
        key, equals, value = flag.partition("=")
        if not (key.strip() and equals):
            raise InvalidConfig(f"expected key=value but got {flag}")
        settings[key.strip()] = value
    return settings
