"""SCRAM: the example of RFC 7677, both sides against each other, and messages that must not be accepted."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable

import pytest

from millbeck.security.principal import Principal
from millbeck.security.sasl.exchange import (
    AuthenticationFailed,
    Challenge,
    ClientWork,
    Completed,
    InvalidToken,
    ServerNotTrusted,
    Work,
)
from millbeck.security.sasl.scram import (
    Credential,
    KnownUser,
    SaltedPasswords,
    ScramClient,
    ScramServer,
    StoredCredential,
    VerifiedPasswords,
    decoy_credential,
    user_principal,
)
from millbeck.security.sasl.scram_messages import (
    ScramMechanism,
    client_proof,
    encode,
    parse_client_first,
    salted_password,
    scram_keys,
    xor,
)

SHA_256 = ScramMechanism.SHA_256
RFC_SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def credential(
    password: str, *, mechanism: ScramMechanism = SHA_256, salt: bytes = b"salty salt", iterations: int = 4096
) -> Credential:
    keys = scram_keys(mechanism, salted_password(mechanism, password, salt, iterations))
    return Credential(salt=salt, stored_key=keys.stored_key, server_key=keys.server_key, iterations=iterations)


class Users:
    def __init__(self, **passwords: str) -> None:
        self.credentials = {name: credential(password) for name, password in passwords.items()}
        self.tokens: dict[str, KnownUser] = {}
        self.mechanism = SHA_256

    def user(self, mechanism: ScramMechanism, name: str) -> KnownUser | None:
        found = self.credentials.get(name) if mechanism is self.mechanism else None
        return None if found is None else KnownUser(credential=found, principal=user_principal(name))

    def token(self, mechanism: ScramMechanism, token_id: str) -> KnownUser | None:
        return self.tokens.get(token_id)

    @property
    def strongest(self) -> ScramMechanism:
        return self.mechanism

    def decoy(self, mechanism: ScramMechanism, name: str) -> StoredCredential:
        return decoy_credential(mechanism, name, secret=b"cluster", like=None)


def server(users: Users, nonce: str = "SERVER") -> ScramServer:
    return ScramServer(SHA_256, users, lambda: nonce)


def run(client: ScramClient, other: ScramServer) -> Completed:
    challenge = other.step(client.begin())
    assert isinstance(challenge, Challenge)
    answer = client.step(challenge.token)
    if isinstance(answer, ClientWork):
        answer = answer.then(answer.job(*answer.arguments))
    assert answer is not None
    completed = other.step(answer)
    assert isinstance(completed, Completed)
    assert client.step(completed.token) is None
    assert client.is_complete
    return completed


def test_the_example_of_rfc_7677() -> None:
    users = Users()
    users.credentials["user"] = credential("pencil", salt=RFC_SALT)
    other = server(users, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    challenge = other.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert isinstance(challenge, Challenge)
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert challenge.token == f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    completed = other.step(f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode())
    assert completed == Completed(
        principal=Principal("User", "user"), token=b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    )


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_both_sides_agree(mechanism: ScramMechanism) -> None:
    users = Users()
    users.mechanism = mechanism
    users.credentials["al,ice=1"] = credential("pass,word", mechanism=mechanism)
    other = ScramServer(mechanism, users, lambda: "S")
    assert run(ScramClient(mechanism, "al,ice=1", "pass,word", "C"), other).principal.name == "al,ice=1"


def test_keys_are_those_of_the_definition() -> None:
    salted = hashlib.pbkdf2_hmac("sha512", b"secret", b"salt", 5000)
    keys = scram_keys(ScramMechanism.SHA_512, salted)
    client_key = hmac.new(salted, b"Client Key", "sha512").digest()
    assert keys.stored_key == hashlib.sha512(client_key).digest()
    assert keys.server_key == hmac.new(salted, b"Server Key", "sha512").digest()


def test_a_wrong_password_and_an_unknown_user_fail_alike() -> None:
    users = Users(alice="right")
    for name in ("alice", "nobody"):
        other = server(users)
        client = ScramClient(SHA_256, name, "wrong", "C")
        challenge = other.step(client.begin())
        assert isinstance(challenge, Challenge)
        work = client.step(challenge.token)
        assert isinstance(work, ClientWork)
        with pytest.raises(InvalidToken, match="invalid client credentials"):
            other.step(work.then(work.job(*work.arguments)))


def test_a_decoy_is_the_same_each_time_and_looks_like_a_real_one() -> None:
    real = credential("x", salt=b"0123456789abcdefghijklmnopqrstuvwxyz", iterations=8192)
    one = decoy_credential(SHA_256, "nobody", secret=b"s", like=real)
    assert one == decoy_credential(SHA_256, "nobody", secret=b"s", like=real)
    assert (len(one.salt), one.iterations) == (len(real.salt), 8192)
    assert one.salt != decoy_credential(SHA_256, "somebody", secret=b"s", like=real).salt
    assert one.salt != decoy_credential(SHA_256, "nobody", secret=b"t", like=real).salt


def test_the_proof_of_a_decoys_own_key_does_not_pass() -> None:
    """Whoever guesses the cluster's secret is still nobody."""
    users = Users()
    other = server(users)
    key = users.decoy(SHA_256, "nobody").stored_key
    bare = "n=nobody,r=C"
    challenge = other.step(f"n,,{bare}".encode())
    assert isinstance(challenge, Challenge)
    without_proof = "c=biws,r=CSERVER"
    signature = SHA_256.hmac(key, f"{bare},{challenge.token.decode()},{without_proof}".encode())
    with pytest.raises(InvalidToken):
        other.step(f"{without_proof},p={encode(xor(signature, key))}".encode())


def final(users: Users, change: Callable[[str], str], *, nonce: str = "CSERVER", binding: str = "biws") -> Completed:
    """Run an exchange with an otherwise valid final message."""
    other = server(users)
    bare = "n=alice,r=C"
    challenge = other.step(f"n,,{bare}".encode())
    assert isinstance(challenge, Challenge)
    without_proof = f"c={binding},r={nonce}"
    salted = salted_password(SHA_256, "right", b"salty salt", 4096)
    authenticated = f"{bare},{challenge.token.decode()},{without_proof}".encode()
    message = f"{without_proof},p={encode(client_proof(SHA_256, salted, authenticated))}"
    completed = other.step(change(message).encode())
    assert isinstance(completed, Completed)
    return completed


def test_the_final_nonce_must_be_the_whole_one() -> None:
    """CVE-2024-56128."""
    users = Users(alice="right")
    assert final(users, lambda text: text).principal.name == "alice"
    for nonce in ("C", "SERVER", "CSERVE", "CSERVERX", "XCSERVER", "XSERVER", "CserveR"):
        with pytest.raises(InvalidToken, match="nonce"):
            final(users, lambda text: text, nonce=nonce)


def test_a_channel_binding_is_refused() -> None:
    users = Users(alice="right")
    with pytest.raises(InvalidToken, match="channel binding"):
        final(users, lambda text: text, binding=b64encode(b"p=tls-unique,,").decode())


@pytest.mark.parametrize("authorization_id", ["bob", "Alice", "alic", "alice,"])
def test_another_authorization_id_is_refused(authorization_id: str) -> None:
    """CVE-2017-12610."""
    name = authorization_id.replace(",", "=2C")
    with pytest.raises(AuthenticationFailed, match="authorization id that is different from username"):
        server(Users(alice="right")).step(f"n,a={name},n=alice,r=C".encode())


def test_the_users_own_authorization_id_is_accepted() -> None:
    assert isinstance(server(Users(alice="right")).step(b"n,a=alice,n=alice,r=C"), Challenge)


@pytest.mark.parametrize(
    "token",
    [b"", b"n", b"n,,", b"p=tls-unique,,n=alice,r=C", b"n,,n=alice", b"n,,n=,r=C", b"n,,n=al=ice,r=C", b"n,,n=a,r=",
     b"n,,n=a,r=\xff", b"n,,n=a,r=C\x00", b"x,,n=a,r=C", b"n,,n=a\x00b,r=C", b"n,,n=" + b"a" * 70000 + b",r=C"],
)  # fmt: skip
def test_malformed_first_messages(token: bytes) -> None:
    with pytest.raises(InvalidToken):
        server(Users(alice="right")).step(token)


@pytest.mark.parametrize("change", ["p=", "p=AAAA", "p=!!!!", "", "p=AAA"])
def test_malformed_proofs(change: str) -> None:
    with pytest.raises(InvalidToken):
        final(Users(alice="right"), lambda text: text.split(",p=")[0] + "," + change)


def test_nothing_is_accepted_after_the_end() -> None:
    other = server(Users(alice="right"))
    run(ScramClient(SHA_256, "alice", "right", "C"), other)
    with pytest.raises(InvalidToken):
        other.step(b"n,,n=alice,r=C")


def test_too_few_iterations_of_a_stored_credential() -> None:
    users = Users()
    users.credentials["alice"] = credential("x", iterations=10)
    with pytest.raises(InvalidToken, match="fewer than 4096"):
        server(users).step(b"n,,n=alice,r=C")


def test_extensions_are_read() -> None:
    first = parse_client_first(b"n,,m=x,n=t,r=C,tokenauth=true,other=1")
    assert first.extensions == {"tokenauth": "true", "other": "1"}


def test_a_token_is_looked_up_among_the_tokens_only() -> None:
    users = Users(alice="right")
    owner = Principal("User", "owner", is_token=True)
    users.tokens["id"] = KnownUser(credential=credential("hmac"), principal=owner, expires_at_ms=77)
    done = run(ScramClient(SHA_256, "id", "hmac", "C", is_token=True), server(users))
    assert (done.principal, done.expires_at_ms) == (owner, 77)
    other = server(users)
    client = ScramClient(SHA_256, "alice", "right", "C", is_token=True)
    challenge = other.step(client.begin())
    assert isinstance(challenge, Challenge)
    work = client.step(challenge.token)
    assert isinstance(work, ClientWork)
    with pytest.raises(InvalidToken):
        other.step(work.then(work.job(*work.arguments)))


# the client's side


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (b"r=X,s=c2FsdA==,i=4096", "does not extend"),
        (b"r=C,s=c2FsdA==,i=4096", "does not extend"),
        (b"r=CS,s=c2FsdA==,i=10", "asks for 10 iterations"),
        (b"r=CS,s=c2FsdA==,i=999999999", "asks for 999999999 iterations"),
        (b"nonsense", "server first"),
    ],
)
def test_a_client_does_not_trust_any_server(challenge: bytes, reason: str) -> None:
    with pytest.raises(ServerNotTrusted, match=reason):
        ScramClient(SHA_256, "alice", "right", "C").step(challenge)


def test_a_client_checks_the_servers_signature() -> None:
    client = ScramClient(SHA_256, "alice", "right", "C")
    work = client.step(b"r=CS,s=c2FsdA==,i=4096")
    assert isinstance(work, ClientWork)
    work.then(work.job(*work.arguments))
    with pytest.raises(ServerNotTrusted, match="signature is wrong"):
        client.step(b"v=" + b64encode(bytes(32)))
    assert not client.is_complete
    with pytest.raises(AuthenticationFailed, match="unknown-user"):
        client.step(b"e=unknown-user")


def test_a_password_is_hashed_once() -> None:
    derived = SaltedPasswords()
    users = Users(alice="right")
    run(ScramClient(SHA_256, "alice", "right", "C", derived=derived), server(users))
    client = ScramClient(SHA_256, "alice", "right", "D", derived=derived)
    other = server(users)
    challenge = other.step(client.begin())
    assert isinstance(challenge, Challenge)
    answer = client.step(challenge.token)
    assert isinstance(answer, bytes)
    assert isinstance(other.step(answer), Completed)


# PLAIN with SCRAM's credentials


def verified(users: Users, name: str, password: str) -> Completed:
    work = VerifiedPasswords(users).check(name, password)
    assert isinstance(work, Work)
    step = work.then(work.job(*work.arguments))
    assert isinstance(step, Completed)
    return step


def test_plain_passwords_are_verified_with_scram_credentials() -> None:
    users = Users(alice="right")
    assert verified(users, "alice", "right").principal == Principal("User", "alice")
    for name, password in (("alice", "wrong"), ("nobody", "right")):
        with pytest.raises(AuthenticationFailed, match="Invalid username or password"):
            verified(users, name, password)


def test_a_password_of_an_unknown_user_costs_as_much_as_one_of_a_known_user() -> None:
    users = Users()
    users.mechanism = ScramMechanism.SHA_512
    users.credentials["alice"] = credential("right", mechanism=ScramMechanism.SHA_512)
    for name in ("alice", "nobody"):
        work = VerifiedPasswords(users).check(name, "right")
        mechanism, _, _, iterations = work.arguments
        assert (mechanism, iterations) == (ScramMechanism.SHA_512, 4096)
