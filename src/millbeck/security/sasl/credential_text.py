"""Parser of SCRAM credentials in the syntax of Kafka's commands.

    SCRAM-SHA-256=[name=alice,password=alice-secret,iterations=8192]            kafka-storage format --add-scram
    SCRAM-SHA-256=[iterations=8192,password=alice-secret]                       kafka-configs --add-config

Values may be in double quotes. ``saltedpassword`` and ``salt``, both in base64, may be given instead of the password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from millbeck.security.sasl.exchange import InvalidToken
from millbeck.security.sasl.scram import Credential
from millbeck.security.sasl.scram_messages import (
    BY_NAME,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    ScramMechanism,
    decode,
    salted_password,
    scram_keys,
)

SALT_SIZE: Final = 20
_TEXT: Final = re.compile(r"\s*(?P<mechanism>[^=\[\]]+)=\[(?P<pairs>.*)\]\s*", re.DOTALL)
_PAIR: Final = re.compile(r'\s*(?P<key>[a-z]+)\s*=\s*(?:"(?P<quoted>[^"]*)"|(?P<plain>[^",]*))\s*(?:,|$)')
_KEYS: Final = ("name", "password", "saltedpassword", "salt", "iterations")


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialText:
    mechanism: ScramMechanism
    name: str = ""
    password: str = field(default="", repr=False)
    salted: bytes = field(default=b"", repr=False)
    salt: bytes = b""
    iterations: int = ITERATIONS_MIN

    def salted_with(self, salt: bytes) -> tuple[bytes, bytes]:
        """The salt and the salted password. Uses ``salt`` unless the text has its own; computes PBKDF2 unless the text
        has the salted password."""
        if self.salted:
            return self.salt, self.salted
        salt = self.salt or salt
        return salt, salted_password(self.mechanism, self.password, salt, self.iterations)

    def credential(self, salt: bytes) -> Credential:
        salt, salted = self.salted_with(salt)
        keys = scram_keys(self.mechanism, salted)
        return Credential(salt=salt, stored_key=keys.stored_key, server_key=keys.server_key, iterations=self.iterations)


def parse_credential(text: str) -> CredentialText:
    """Parse a credential; raises ValueError with a message that contains no password."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError("expected MECHANISM=[name=…,password=…], such as SCRAM-SHA-512=[name=alice,password=…]")
    mechanism = BY_NAME.get(match["mechanism"].strip().upper())
    if mechanism is None:
        raise ValueError(f"{match['mechanism'].strip()[:40]} is not one of {', '.join(BY_NAME)}")
    given = _pairs(match["pairs"])
    if not given.get("password") and not given.get("saltedpassword"):
        raise ValueError("one of password and saltedpassword is needed")
    if "password" in given and "saltedpassword" in given:
        raise ValueError("only one of password and saltedpassword may be given")
    if "saltedpassword" in given and not given.get("salt"):
        raise ValueError("saltedpassword needs the salt it was made with")
    return CredentialText(
        mechanism=mechanism,
        name=given.get("name", ""),
        password=given.get("password", ""),
        salted=_base64("saltedpassword", given),
        salt=_base64("salt", given),
        iterations=_iterations(given),
    )


def _pairs(text: str) -> dict[str, str]:
    given: dict[str, str] = {}
    position = 0
    while position < len(text):
        pair = _PAIR.match(text, position)
        if pair is None:
            raise ValueError(f"expected key=value, separated by commas, with keys of {', '.join(_KEYS)}")
        if pair["key"] not in _KEYS:
            raise ValueError(f"{pair['key'][:40]} is not one of {', '.join(_KEYS)}")
        if pair["key"] in given:
            raise ValueError(f"{pair['key']} is given twice")
        given[pair["key"]] = pair["plain"].strip() if pair["quoted"] is None else pair["quoted"]
        position = pair.end()
    return given


def _base64(key: str, given: dict[str, str]) -> bytes:
    try:
        return decode(given.get(key, ""))
    except InvalidToken:
        raise ValueError(f"{key} is not base64") from None


def _iterations(given: dict[str, str]) -> int:
    text = given.get("iterations", str(ITERATIONS_MIN))
    if not (text.isascii() and text.isdigit() and ITERATIONS_MIN <= int(text[:9]) <= ITERATIONS_MAX):
        raise ValueError(f"iterations must be a number from {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    return int(text)
