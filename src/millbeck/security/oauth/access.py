"""The allow list of URLs and files for OAuth settings (CVE-2025-27817), set by the operator who starts the node.

Without a list, anyone who can change one setting could make the node read any file or contact any server, and learn
from its errors what exists there. In Kafka the lists are Java system properties, given in ``KAFKA_OPTS``; here they are
read from there or from the server's properties file.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from millbeck.kernel.errors import InvalidConfig

ALLOWED_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
ALLOWED_FILES: Final = "org.apache.kafka.sasl.oauthbearer.allowed.files"
URL_LENGTH_MAX: Final = 2000
_WHERE: Final = "It may also be set in the server's properties file."
_SCHEMES: Final = ("https", "http", "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The allowed URLs and files; None allows everything, for clients, whose settings are trusted."""

    urls: Collection[str] | None = None
    files: Collection[str] | None = None


EVERYTHING: Final = Allowed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """An http or https URL, or the path of a file."""

    text: str
    path: str | None = None
    """The path of a file URL."""
    host: str = ""
    port: int = 0
    target: str = ""
    """The path and query of the URL."""
    is_encrypted: bool = False


def parse_location(text: str, setting: str, allowed: Allowed) -> Location:
    """Parse a URL with one of the schemes https, http and file. Raises `InvalidConfig`."""
    # This check comes first: the error must not reveal whether something exists at the address.
    if allowed.urls is not None and text not in allowed.urls:
        raise InvalidConfig(
            f"Invalid value {text[:URL_LENGTH_MAX]} for configuration {setting}: The URL cannot be accessed due to "
            f"restrictions. Update the system property '{ALLOWED_URLS}' to allow the URL to be accessed. {_WHERE}"
        )
    parts = _split(text, setting)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise InvalidConfig(f"{setting}: a file URL must look like file:///directory/name")
        return Location(text=text, path=unquote(parts.path))
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise InvalidConfig(f"{setting}: {error}") from None
    if not host or "@" in parts.netloc:
        raise InvalidConfig(f"{setting}: expected https://host/path, without user and password")
    is_encrypted = parts.scheme == "https"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Location(
        text=text, host=host, port=port or (443 if is_encrypted else 80), target=target, is_encrypted=is_encrypted
    )


def check_file(path: str, setting: str, allowed: Allowed) -> str:
    """The path, if it may be read. Raises `InvalidConfig`."""
    if allowed.files is not None and path not in allowed.files:
        raise InvalidConfig(
            f"Invalid value {path[:URL_LENGTH_MAX]} for configuration {setting}: The file cannot be accessed due to "
            f"restrictions. Update the system property '{ALLOWED_FILES}' to allow the file to be accessed. {_WHERE}"
        )
    return path


def _split(text: str, setting: str) -> SplitResult:
    if len(text) > URL_LENGTH_MAX or not text.isascii() or any(character <= " " for character in text):
        raise InvalidConfig(f"{setting}: not a URL: it must have at most {URL_LENGTH_MAX} characters and no spaces")
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise InvalidConfig(f"{setting}: {error}") from None
    if parts.scheme not in _SCHEMES:
        raise InvalidConfig(f"{setting}: expected a URL that begins with {', '.join(f'{each}:' for each in _SCHEMES)}")
    return parts
