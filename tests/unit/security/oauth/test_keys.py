"""Keys and signatures: what verifies, and every way in which a signature can be forged."""

from __future__ import annotations

import hmac
import json
import sys
from typing import Any

import pytest
from joserfc.jwk import ECKey, OKPKey

from millbeck.kernel.errors import InvalidConfig
from millbeck.security.oauth.jwt import TokenRefused, encoded, parse_token, unsigned_text
from millbeck.security.oauth.keys import ALGORITHMS, KEYS_MAX, check_installed, parse_key_set, verify_signature
from tests.fixtures.identity_provider import EC, ED, OTHER, RSA, key_set, sign

CLAIMS = {"sub": "alice"}
KEYS = parse_key_set(key_set("rsa", "ec", "ed"))
BY_ALGORITHM: dict[str, Any] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), RSA),
    "ES256": EC,
    "ES384": ECKey.generate_key("P-384", {"kid": "ec384"}),
    "ES512": ECKey.generate_key("P-521", {"kid": "ec521"}),
    "EdDSA": ED,
    "Ed25519": ED,
}


def verified(text: str, keys: Any = KEYS) -> dict[str, Any]:
    token = parse_token(text)
    key = keys.find(token)
    assert key is not None
    return verify_signature(token, key)


def listed(*keys: Any, **changed: Any) -> bytes:
    return json.dumps({"keys": [key.as_dict(private=False) | changed for key in keys]}).encode()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm(algorithm: str) -> None:
    key = BY_ALGORITHM[algorithm]
    text = sign({"alg": algorithm, "kid": key.kid}, CLAIMS, key)
    assert verified(text, parse_key_set(listed(key))) == CLAIMS


def test_the_table_of_algorithms_has_none_with_a_shared_secret_and_none_at_all() -> None:
    assert not {"none", "HS256", "HS384", "HS512"} & set(ALGORITHMS)


def test_a_token_without_key_id_is_verified_with_the_one_key_that_fits() -> None:
    assert verified(sign({"alg": "ES256"}, CLAIMS, EC)) == CLAIMS
    both = parse_key_set(listed(EC, OTHER))
    with pytest.raises(TokenRefused, match="2 keys may have signed"):
        both.find(parse_token(sign({"alg": "ES256"}, CLAIMS, EC)))


def test_an_unknown_key_id_has_no_key() -> None:
    assert KEYS.find(parse_token(sign({"alg": "ES256", "kid": "new"}, CLAIMS, EC))) is None


def public_key_as_secret() -> str:
    """HS256 with the public key's text as the secret, which a careless verifier takes for valid."""
    text = unsigned_text({"alg": "HS256", "kid": "ec"}, CLAIMS)
    return f"{text}.{encoded(hmac.digest(EC.as_pem(private=False), text.encode(), 'sha256'))}"


def changed_part(index: int, replacement: str) -> str:
    parts = sign({"alg": "ES256", "kid": "ec"}, CLAIMS, EC).split(".")
    parts[index] = replacement
    return ".".join(parts)


FORGED = {
    "no algorithm and no signature": unsigned_text({"alg": "none", "kid": "ec"}, CLAIMS) + ".",
    "no algorithm, capitals": unsigned_text({"alg": "NONE", "kid": "ec"}, CLAIMS) + ".",
    "signed by somebody else": sign({"alg": "ES256", "kid": "ec"}, CLAIMS, OTHER),
    "by somebody else, who brings the key along": sign(
        {"alg": "ES256", "kid": "ec", "jwk": OTHER.as_dict(private=False)}, CLAIMS, OTHER
    ),
    "by somebody else, with an address of keys": sign(
        {"alg": "ES256", "kid": "ec", "jku": "https://evil/jwks", "x5u": "https://evil/x"}, CLAIMS, OTHER
    ),
    "claims changed": changed_part(1, encoded(b'{"sub":"admin"}')),
    "header changed": changed_part(0, encoded(b'{"alg":"ES256","kid":"ec","typ":"JWT"}')),
    "signature left out": changed_part(2, ""),
    "signature of zeros (CVE-2022-21449)": changed_part(2, encoded(bytes(64))),
    "signature cut": changed_part(2, encoded(bytes(63))),
    "signature long": changed_part(2, encoded(bytes(5000))),
}


@pytest.mark.parametrize("text", FORGED.values(), ids=FORGED.keys())
def test_a_forged_signature_is_refused(text: str) -> None:
    token = parse_token(text)
    with pytest.raises(TokenRefused):
        verify_signature(token, KEYS.keys[1])


def test_the_public_key_is_no_shared_secret() -> None:
    token = parse_token(public_key_as_secret())
    with pytest.raises(TokenRefused, match="HS256"):
        verify_signature(token, KEYS.keys[1])


@pytest.mark.parametrize("algorithm", ["RS256", "ES384", "EdDSA"])
def test_a_key_is_used_for_its_own_algorithms_only(algorithm: str) -> None:
    text = unsigned_text({"alg": algorithm, "kid": "ec"}, CLAIMS) + ".c2ln"
    with pytest.raises(TokenRefused, match="not for signatures by"):
        KEYS.find(parse_token(text))


def test_the_algorithm_of_a_key_counts() -> None:
    keys = parse_key_set(listed(RSA, alg="RS512"))
    assert verified(sign({"alg": "RS512", "kid": "rsa"}, CLAIMS, RSA), keys) == CLAIMS
    with pytest.raises(TokenRefused, match="not for signatures by"):
        keys.find(parse_token(sign({"alg": "RS256", "kid": "rsa"}, CLAIMS, RSA)))


LEFT_OUT = {
    "for encryption": listed(EC, use="enc"),
    "not for verifying": listed(EC, key_ops=["encrypt"]),
    "of an algorithm with a shared secret": listed(EC, alg="HS256"),
    "of unknown kind": b'{"keys":[{"kty":"AKP","alg":"ML-DSA-44","pub":"AA"}]}',
    "a shared secret": b'{"keys":[{"kty":"oct","k":"c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"}]}',
    "no point of the curve": listed(EC, x="AAAA"),
    "parts of a wrong kind": listed(EC, x=7),
    "too short": json.dumps({"keys": [{"kty": "RSA", "n": encoded(b"\xff" * 128), "e": "AQAB"}]}).encode(),
    "too long": json.dumps({"keys": [{"kty": "RSA", "n": encoded(b"\xff" * 4096), "e": "AQAB"}]}).encode(),
    "no object": b'{"keys":[7, null, "key"]}',
}


@pytest.mark.parametrize("data", LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_unusable_keys_are_left_out(data: bytes) -> None:
    with pytest.raises(ValueError, match="can verify a signature"):
        parse_key_set(data)
    everything = {"keys": json.loads(data)["keys"] + json.loads(key_set("ec"))["keys"]}
    found = parse_key_set(json.dumps(everything).encode())
    assert [key.key_id for key in found.keys] == ["ec"]
    assert found.ignored == len(everything["keys"]) - 1


@pytest.mark.parametrize(
    "data",
    [b"", b"nonsense", b"[]", b"{}", b'{"keys":{}}', b'{"keys":[]}', b"[" * 100_000, b"\xff"],
    ids=["empty", "nonsense", "list", "no keys", "object", "none", "deep", "bytes"],
)
def test_what_is_no_key_set_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"not a key set|can verify"):
        parse_key_set(data)


def test_the_number_of_keys_is_limited() -> None:
    with pytest.raises(ValueError, match="more than"):
        parse_key_set(json.dumps({"keys": [{}] * (KEYS_MAX + 1)}).encode())


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joserfc.jws", None)
    with pytest.raises(InvalidConfig, match=r"pip install 'millbeck\[security\]'"):
        check_installed("sasl.enabled.mechanisms")


def test_a_key_of_another_curve_of_its_kind_verifies_nothing() -> None:
    exchange = OKPKey.generate_key("X25519", {"kid": "ed"})
    data = listed(exchange)
    try:
        keys = parse_key_set(data)
    except ValueError:
        return
    token = parse_token(sign({"alg": "EdDSA", "kid": "ed"}, CLAIMS, ED))
    key = keys.find(token)
    assert key is not None
    with pytest.raises(TokenRefused):
        verify_signature(token, key)
