"""Token requests to an identity provider (RFC 6749, RFC 7523), and parsing of the responses."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

from millbeck.security.oauth.jwt import TOKEN_LENGTH_MAX, TokenRefused, json_object

CLIENT_CREDENTIALS: Final = "client_credentials"
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_CLIENT_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_TOKEN_NAMES: Final = ("access_token", "id_token")
_OK: Final = (200, 201)
_TRIED_AGAIN: Final = (408, 425, 429)
_SERVER_ERRORS: Final = 500
_SHOWN_LENGTH_MAX: Final = 200


class TokenDenied(Exception):
    """The provider returned no token; the message contains no secret. ``is_final`` means that a retry will not help."""

    def __init__(self, message: str, *, is_final: bool) -> None:
        super().__init__(message)
        self.is_final = is_final


@dataclass(frozen=True, slots=True)
class TokenRequest:
    form: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def secret_request(client_id: str, secret: str, scope: str | None, *, url_encodes: bool = False) -> TokenRequest:
    """The grant client_credentials, with id and secret of the client. ``url_encodes`` encodes them as in RFC 6749; many
    providers expect them unencoded, which is Kafka's default."""
    if url_encodes:
        client_id, secret = quote_plus(client_id), quote_plus(secret)
    credentials = b64encode(f"{client_id}:{secret}".encode()).decode("ascii")
    return TokenRequest(_form(grant_type=CLIENT_CREDENTIALS, scope=scope), {"Authorization": f"Basic {credentials}"})


def client_assertion_request(assertion: str, client_id: str | None, scope: str | None) -> TokenRequest:
    """The grant client_credentials, with an assertion instead of a secret."""
    return TokenRequest(
        _form(
            client_assertion_type=_CLIENT_ASSERTION,
            client_assertion=assertion,
            grant_type=CLIENT_CREDENTIALS,
            client_id=client_id,
            scope=scope,
        )
    )


def jwt_bearer_request(assertion: str, scope: str | None) -> TokenRequest:
    """The grant jwt-bearer (KIP-1139): the assertion is the grant."""
    return TokenRequest(_form(grant_type=JWT_BEARER, assertion=assertion, scope=scope))


def token_of_answer(status: int, body: bytes) -> str:
    """The token in the provider's answer. Raises `TokenDenied`."""
    if status not in _OK:
        is_final = status < _SERVER_ERRORS and status not in _TRIED_AGAIN
        raise TokenDenied(f"status {status}{_error_of(body)}", is_final=is_final)
    try:
        answer = json_object(body, "answer")
    except TokenRefused as error:
        raise TokenDenied(str(error), is_final=False) from None
    for name in _TOKEN_NAMES:
        text = answer.get(name)
        if isinstance(text, str) and text.strip():
            if len(text) > TOKEN_LENGTH_MAX:
                raise TokenDenied(f"the token has more than {TOKEN_LENGTH_MAX} characters", is_final=True)
            return text.strip()
    raise TokenDenied(f"the answer has neither {' nor '.join(_TOKEN_NAMES)}", is_final=True)


def _form(**values: str | None) -> str:
    return urlencode({name: value for name, value in values.items() if value})


def _error_of(body: bytes) -> str:
    """The provider's error description, which by RFC 6749 contains no secrets."""
    try:
        answer: dict[str, Any] = json_object(body, "answer")
    except TokenRefused:
        return ""
    parts = [answer[name] for name in ("error", "error_description") if isinstance(answer.get(name), str)]
    shown = ": ".join(parts)[:_SHOWN_LENGTH_MAX]
    # Written as JSON, which has no control characters.
    return f", {json.dumps(shown)[1:-1]}" if shown else ""
