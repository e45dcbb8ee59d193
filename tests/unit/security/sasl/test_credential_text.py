"""SCRAM credentials as Kafka's commands spell them."""

from __future__ import annotations

import pytest

from millbeck.security.sasl.credential_text import parse_credential
from millbeck.security.sasl.scram_messages import ScramMechanism, encode, salted_password, scram_keys

SALT = b"0123456789abcdef"


def test_a_password_is_hashed_with_the_salt_and_the_iterations() -> None:
    text = parse_credential("SCRAM-SHA-512=[name=alice,password=alice-secret,iterations=5000]")
    assert (text.mechanism, text.name, text.iterations) == (ScramMechanism.SHA_512, "alice", 5000)
    credential = text.credential(SALT)
    salted = salted_password(ScramMechanism.SHA_512, "alice-secret", SALT, 5000)
    assert (credential.salt, credential.iterations) == (SALT, 5000)
    assert (credential.stored_key, credential.server_key) == scram_keys(ScramMechanism.SHA_512, salted)


def test_what_is_salted_already_keeps_its_salt() -> None:
    salted = salted_password(ScramMechanism.SHA_256, "alice-secret", b"own", 4096)
    text = parse_credential(f'scram-sha-256=[name="alice", saltedpassword="{encode(salted)}", salt="{encode(b"own")}"]')
    credential = text.credential(SALT)
    assert (credential.salt, credential.iterations) == (b"own", 4096)
    assert credential.stored_key == scram_keys(ScramMechanism.SHA_256, salted).stored_key


def test_quoted_passwords_may_contain_anything_but_quotes() -> None:
    assert parse_credential('SCRAM-SHA-256=[password="a,b=]c",name=x]').password == "a,b=]c"
    assert parse_credential("SCRAM-SHA-256=[password=a=b,name=x]").password == "a=b"


REFUSED = {
    "no brackets": ("SCRAM-SHA-256=name=a", "expected MECHANISM=["),
    "no mechanism": ("[name=a]", "expected MECHANISM=["),
    "mechanism": ("PLAIN=[name=a,password=secret]", "PLAIN is not one of SCRAM-SHA-256, SCRAM-SHA-512"),
    "no password": ("SCRAM-SHA-256=[name=a]", "one of password and saltedpassword is needed"),
    "both": (
        "SCRAM-SHA-256=[password=secret,saltedpassword=YQ==,salt=YQ==]",
        "only one of password and saltedpassword may be given",
    ),
    "no salt": ("SCRAM-SHA-256=[saltedpassword=YQ==]", "saltedpassword needs the salt it was made with"),
    "base64": ("SCRAM-SHA-256=[password=secret,salt=!]", "salt is not base64"),
    "few": ("SCRAM-SHA-256=[password=secret,iterations=4095]", "iterations must be a number from 4096 to 16384"),
    "many": ("SCRAM-SHA-256=[password=secret,iterations=16385]", "iterations must be a number from 4096 to 16384"),
    "words": ("SCRAM-SHA-256=[password=secret,iterations=many]", "iterations must be a number from 4096 to 16384"),
    "key": ("SCRAM-SHA-256=[password=secret,user=a]", "user is not one of name, password"),
    "twice": ("SCRAM-SHA-256=[password=secret,password=b]", "password is given twice"),
    "half quoted": ('SCRAM-SHA-256=[password="secret]', "expected key=value"),
}


@pytest.mark.parametrize(("text", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_without_the_password(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("[", r"\[")) as caught:
        parse_credential(text)
    assert "secret" not in str(caught.value)
