"""Settings as text: ``.properties`` files, ``KAFKA_...`` environment variables, ``key=value`` flags, and who wins.

The file's grammar is Java's: ``#`` and ``!`` begin comment lines; a backslash at the end of a line continues it with
the next one's indentation dropped; the key ends at the first unescaped ``=``, ``:`` or blank; ``\\t \\n \\r \\f`` and
``\\uXXXX`` are escapes, and a backslash before anything else just drops out. A key given twice has its last value.
Pure: whoever has a file or an environment passes its contents in.
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

_PREFIXES = ("KAFKA_CFG_", "KAFKA_")
"""In the order of increasing strength; a name with the first prefix is not read with the second."""

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
"""Variables that scripts and container images set for other purposes."""

_UNDERSCORES = re.compile(r"_{1,3}")
_UNDERSCORE_MEANING = {"_": ".", "__": "_", "___": "-"}


def parse_properties(text: str) -> dict[str, str]:
    """The keys and values of a file; raises `InvalidConfig` that names the line of a malformed escape."""
    settings: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key_match = _KEY.match(line)
        assert key_match is not None, "the pattern matches the empty text"
        separator = _SEPARATOR.match(line, key_match.end())
        assert separator is not None, "the pattern matches the empty text"
        key, value = key_match.group(), line[separator.end() :]
        settings[_unescaped(key, number)] = _unescaped(value, number)
    return settings


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number of its first natural line, text without leading blanks) of every line that says something."""
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

    # Java writes a character beyond the first 65,536 as two escapes; UTF-16 joins them.
    try:
        return _ESCAPE.sub(meaning, text).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise InvalidConfig(f"line {line_number}: \\u escapes one half of a surrogate pair") from None


def settings_of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings in ``KAFKA_...`` variables: ``_`` means a dot, ``__`` an underscore, ``___`` a dash.

    ``KAFKA_CFG_...`` is an alias that loses against the shorter form.
    """
    settings: dict[str, str] = {}
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


def setting_of_variable(name: str) -> str:
    """The setting a variable's name stands for, prefix removed: ``LOG_RETENTION_MS`` is ``log.retention.ms``."""
    return _UNDERSCORES.sub(lambda run: _UNDERSCORE_MEANING[run[0]], name).lower()


def settings_of_flags(flags: Iterable[str]) -> dict[str, str]:
    """The settings of ``key=value`` flags; raises `InvalidConfig` for one that is not of this form."""
    settings: dict[str, str] = {}
    for flag in flags:
        key, equals, value = flag.partition("=")
        if not (key.strip() and equals):
            raise InvalidConfig(f"expected key=value but got {flag}")
        settings[key.strip()] = value
    return settings


def merged_settings(
    *, file_text: str = "", environment: Mapping[str, str] | None = None, flags: Iterable[str] = ()
) -> dict[str, str]:
    """Flags win over the environment, which wins over the file. Raises `InvalidConfig`."""
    return parse_properties(file_text) | settings_of_environment(environment or {}) | settings_of_flags(flags)
