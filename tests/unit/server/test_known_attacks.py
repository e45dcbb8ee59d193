"""Attacks on Kafka that became known as CVEs, each tried here, and tried again without the guard against it.

An attack returns whether it succeeded. That it does without the guard shows that the test would notice its loss. CVEs
of secrets in logs (2019-12399, 2026-33558) are in `test_planted_secrets`, compression bombs in the tests of `records`,
and a batch that expires in flight (2026-35554) in those of the client's `sender`.
"""

from __future__ import annotations

import ast
import asyncio
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import millbeck
from millbeck.kernel import config_providers
from millbeck.kernel.config_providers import resolved_settings
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, InvalidConfig
from millbeck.metadata.image import ConfigResource
from millbeck.metadata.image import ResourceType as ConfigType
from millbeck.security.acl_index import AclGroup
from millbeck.security.acls import AccessControlEntry
from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType
from millbeck.security.oauth import access, claims, keys
from millbeck.security.oauth.access import Allowed
from millbeck.security.oauth.claims import ClaimRules
from millbeck.security.oauth.jwt import TokenRefused, encoded, parse_token, unsigned_text
from millbeck.security.principal import Principal, parse_principal
from millbeck.security.sasl import jaas
from millbeck.security.sasl.exchange import AuthenticationFailed, Challenge, Completed, InvalidToken
from millbeck.security.sasl.jaas import parse_jaas
from millbeck.security.sasl.plain import ListedPasswords, PlainServer
from millbeck.security.sasl.scram import Credential, KnownUser, ScramServer
from millbeck.security.sasl.scram_messages import (
    ScramMechanism,
    client_proof,
    encode,
    parse_server_first,
    salted_password,
    scram_keys,
)
from millbeck.security.standard_authorizer import StandardAuthorizer
from millbeck.server.config import checks
from millbeck.server.config.checks import ConfigChecks
from millbeck.server.network.call import Call
from millbeck.server.network.receive import FrameReader
from millbeck.server.requests.handlers import produce as produce_handler
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.fixtures.identity_provider import EC, key_set, sign
from tests.unit.server.fetch.test_delayed_fetch import as_follower, create_replicated
from tests.unit.server.harness.broker_harness import BrokerHarness, Client, one_batch
from tests.unit.server.harness.client_requests import create, fetch, produce, results
from tests.unit.server.harness.method_patches import needs_sources
from tests.unit.server.harness.removed_guards import without_guard
from tests.unit.server.harness.secured import acl, connect_as, create_acls, run_secured

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Attack:
    """``succeeds`` is tried as it is, and then without each of the guards."""

    succeeds: Callable[[], bool]
    guards: dict[str, Callable[[Patch], None]]


def guard(owner: Any, name: str, text: str, instead: str) -> Callable[[Patch], None]:
    return lambda patch: without_guard(patch, owner, name, text, instead)


def all_of(*guards: Callable[[Patch], None]) -> Callable[[Patch], None]:
    """Guards that stand behind one another."""

    def remove(patch: Patch) -> None:
        for each in guards:
            each(patch)

    return remove


def is_accepted(*errors: type[Exception]) -> Callable[[Callable[[], object]], Callable[[], bool]]:
    """An attack that succeeds unless it raises one of these."""

    def of(attempt: Callable[[], object]) -> Callable[[], bool]:
        def succeeds() -> bool:
            try:
                attempt()
            except errors:
                return False
            return True

        return succeeds

    return of


# logging in

MECHANISM = ScramMechanism.SHA_256
SALTED = salted_password(MECHANISM, "alice-secret", b"salt", 4096)


class OneUser:
    strongest = MECHANISM

    def user(self, mechanism: ScramMechanism, name: str) -> KnownUser:
        stored, server = scram_keys(MECHANISM, SALTED)
        credential = Credential(salt=b"salt", stored_key=stored, server_key=server, iterations=4096)
        return KnownUser(credential=credential, principal=Principal("User", name))

    def token(self, mechanism: ScramMechanism, token_id: str) -> None:
        return None

    def decoy(self, mechanism: ScramMechanism, name: str) -> Credential:
        raise AssertionError("the user exists")


@is_accepted(AuthenticationFailed)
def plain_as_somebody_else() -> object:
    return PlainServer(ListedPasswords({"alice": "alice-secret"})).step(b"admin\0alice\0alice-secret")


def scram(header: str = "n,,", sent_nonce: Callable[[str], str] = lambda nonce: nonce) -> object:
    server = ScramServer(MECHANISM, OneUser(), lambda: "server")
    bare = "n=alice,r=client"
    challenge = server.step(f"{header}{bare}".encode())
    assert isinstance(challenge, Challenge)
    first = parse_server_first(challenge.token)
    without_proof = f"c={encode(header.encode())},r={sent_nonce(first.nonce)}"
    proof = client_proof(MECHANISM, SALTED, f"{bare},{first.text},{without_proof}".encode())
    completed = server.step(f"{without_proof},p={encode(proof)}".encode())
    assert isinstance(completed, Completed)
    return completed


scram_as_somebody_else = is_accepted(AuthenticationFailed)(lambda: scram("n,a=admin,"))
scram_with_a_prefix_of_the_nonce = is_accepted(InvalidToken)(lambda: scram(sent_nonce=lambda nonce: nonce[:-1]))
scram_with_a_suffix_of_the_nonce = is_accepted(InvalidToken)(lambda: scram(sent_nonce=lambda nonce: nonce[1:]))
_NONCE = "hmac.compare_digest(final.nonce.encode(), self._full_nonce.encode())"


@is_accepted(InvalidConfig)
def ldap_login_module() -> object:
    return parse_jaas('com.sun.security.auth.module.LdapLoginModule required userProvider="ldap://evil";', "s")


@is_accepted(InvalidConfig, ApiError)
def jndi_login_module_by_a_dynamic_config() -> object:
    name = "listener.name.out.plain.sasl.jaas.config"
    options = {name: 'com.sun.security.auth.module.JndiLoginModule required user.provider.url="rmi://evil";'}
    ConfigChecks({}).check(ConfigResource(ConfigType.BROKER, "1"), options, options)
    return None


# tokens

RULES = ClaimRules(issuer="https://idp", audiences=("kafka",), clock_skew_ms=0)
NOW_S = 1_700_000_000
GOOD = {"sub": "alice", "iss": "https://idp", "aud": "kafka", "iat": NOW_S - 10, "exp": NOW_S + 100}


def token_is_accepted(text: str) -> object:
    token = parse_token(text)
    listed = keys.parse_key_set(key_set("ec"))
    keys.check_algorithm(token)
    key = listed.find(token) or listed.keys[0]
    return claims.check_claims(keys.verify_signature(token, key), RULES, NOW_S * 1000)


def signed(**changed: Any) -> str:
    return sign({"alg": "ES256", "kid": EC.kid}, GOOD | changed, EC)


refused = is_accepted(TokenRefused)
forged = refused(lambda: token_is_accepted(signed().rpartition(".")[0] + "." + encoded(bytes(64))))
unsigned = refused(lambda: token_is_accepted(unsigned_text({"alg": "none"}, GOOD) + "."))
expired = refused(lambda: token_is_accepted(signed(exp=NOW_S - 1)))
for_others = refused(lambda: token_is_accepted(signed(aud="others")))
of_others = refused(lambda: token_is_accepted(signed(iss="https://evil")))


# what settings may name


@is_accepted(InvalidConfig)
def url_of_the_inner_network() -> object:
    return access.parse_location(
        "http://169.254.169.254/", "sasl.oauthbearer.jwks.endpoint.url", Allowed(urls=("https://idp",))
    )


@is_accepted(InvalidConfig)
def file_outside_of_the_allowed_paths() -> object:
    settings = {
        "config.providers": "file",
        "config.providers.file.class": "FileConfigProvider",
        "config.providers.file.param.allowed.paths": "/etc/secrets",
        "ssl.key.password": "${file:/etc/secrets/../passwd:root}",
    }
    return resolved_settings(settings, read_text=lambda path: "root=x", environment={})


@is_accepted(InvalidConfig, ApiError)
def variable_in_a_dynamic_config() -> object:
    options = {"listener.name.out.ssl.keystore.password": "${file:/etc/passwd:root}"}
    ConfigChecks({}).check(ConfigResource(ConfigType.BROKER, "1"), options, options)
    return None


# permissions


def acls_are_gone_with_one_of_them() -> bool:
    entries = [
        AccessControlEntry(
            resource_type=ResourceType.TOPIC,
            resource_name="t",
            pattern_type=PatternType.LITERAL,
            principal="User:alice",
            host="*",
            operation=operation,
            permission_type=Permission.DENY,
        )
        for operation in (Operation.READ, Operation.WRITE)
    ]
    authorizer = StandardAuthorizer(allow_everyone_if_no_acl_found=True)
    for _ in authorizer.replace(entries):
        pass
    authorizer.is_loaded = True
    authorizer.change(entries[:1], ())
    return authorizer.authorize(parse_principal("User:alice"), "::1", Operation.WRITE, ResourceType.TOPIC, "t")


def a_clients_fetch_as_a_replica() -> bool:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> bool:
        topic_id = await create_replicated(harness, client)
        await produce(client, b"x")
        await create_acls(client, acl(Operation.READ))
        alice = await connect_as(harness, environment)
        (result,) = results(await alice.ask(as_follower(fetch((0, 0), topic_id=topic_id)), 17)).values()
        return bool(result.error_code == 0)

    return bool(run_secured(scenario))


def a_transaction_without_its_id() -> bool:
    """The permission for the transactional id is checked if the request names it: it must."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> bool:
        await create(client)
        await create_acls(client, acl(Operation.WRITE))
        alice = await connect_as(harness, environment)
        records = one_batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
        for acks in (1, -1):
            data = [TopicProduceData(name="t", partition_data=[PartitionProduceData(0, records)])]
            request = ProduceRequest(transactional_id=None, acks=acks, timeout_ms=1000, topic_data=data)
            (answer,) = (await alice.ask(request, 9)).responses[0].partition_responses
            if answer.error_code == 0:
                return True
        return False

    return bool(run_secured(scenario))


# memory


def memory_for_bytes_that_are_only_announced() -> bool:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> bool:
        for _ in range(200):
            other = await harness.connect(environment)
            other.write(struct.pack(">i", 500_000) + b"\0" * 10)
        await asyncio.sleep(1)
        assert harness.node is not None
        held = sum(each._held_bytes for listener in harness.node.listeners for each in listener.connections.values())
        return held > 200 * 1024

    harness = BrokerHarness(
        listeners="SASL_PLAINTEXT://:9092,PLAINTEXT://:9094",
        inter_broker_listener_name="PLAINTEXT",
        sasl_enabled_mechanisms="SCRAM-SHA-256",
    )
    return bool(harness.run(scenario))


ANY_MODULE = guard(
    jaas, "_entry", "LoginModule(full_name(name, (each.value for each in LoginModule)))", "LoginModule.PLAIN"
)


def no_variables(patch: Patch) -> None:
    patch.setattr(checks, "has_variable", lambda text: False)


ATTACKS: dict[str, Attack] = {
    "2017-12610, PLAIN": Attack(
        plain_as_somebody_else,
        {"id": guard(PlainServer, "step", "authorization_id and authorization_id != user", "False")},
    ),
    "2017-12610, SCRAM": Attack(
        scram_as_somebody_else,
        {
            "id": guard(
                ScramServer,
                "_client_first",
                "first.authorization_id and first.authorization_id != first.user",
                "False",
            )
        },
    ),
    "2024-56128, prefix": Attack(
        scram_with_a_prefix_of_the_nonce, {"nonce": guard(ScramServer, "_client_final", f"not {_NONCE}", "False")}
    ),
    "2024-56128, suffix": Attack(
        scram_with_a_suffix_of_the_nonce,
        {"equal": guard(ScramServer, "_client_final", _NONCE, "self._full_nonce.endswith(final.nonce)")},
    ),
    "2025-27818": Attack(
        ldap_login_module,
        {
            "list": guard(
                jaas,
                "_entry",
                "LoginModule(full_name(name, (each.value for each in LoginModule)))",
                "LoginModule.PLAIN",
            )
        },
    ),
    "2023-25194, 2025-27819": Attack(
        jndi_login_module_by_a_dynamic_config,
        {
            "parsed": guard(checks, "_check_broker", "parse_jaas(options[name], name)", "pass"),
            "list": guard(
                jaas,
                "_entry",
                "LoginModule(full_name(name, (each.value for each in LoginModule)))",
                "LoginModule.PLAIN",
            ),
        },
    ),
    "2026-33557, forged": Attack(forged, {"signature": guard(keys, "verify_signature", "not is_genuine", "False")}),
    "2026-33557, none": Attack(
        unsigned,
        {
            "algorithm": all_of(
                guard(keys, "check_algorithm", "token.algorithm not in ALGORITHMS", "False"),
                guard(keys, "verify_signature", "not is_genuine", "False"),
            )
        },
    ),
    "2026-33557, expired": Attack(
        expired,
        {"time": guard(claims, "check_claims", "now_ms - rules.clock_skew_ms >= expires_ms", "False")},
    ),
    "2026-33557, audience": Attack(
        for_others, {"audience": lambda patch: patch.setattr(claims, "_check_audience", lambda *given: None)}
    ),
    "2026-33557, issuer": Attack(
        of_others, {"issuer": lambda patch: patch.setattr(claims, "_check_issuer", lambda *given: None)}
    ),
    "2025-27817": Attack(
        url_of_the_inner_network,
        {"list": guard(access, "parse_location", "allowed.urls is not None and text not in allowed.urls", "False")},
    ),
    "2024-31141, paths": Attack(
        file_outside_of_the_allowed_paths,
        {"normal": guard(config_providers._Lookup, "_allowed", "posixpath.normpath(path)", "path")},
    ),
    "2024-31141, dynamic": Attack(
        variable_in_a_dynamic_config,
        {"variable": no_variables},
    ),
    "2024-27309": Attack(
        acls_are_gone_with_one_of_them,
        {"one": lambda patch: patch.setattr(AclGroup, "remove", lambda self, entry: self.__init__())},
    ),
    "2018-1288": Attack(
        a_clients_fetch_as_a_replica,
        {"cluster action": lambda patch: patch.setattr(Call, "is_cluster_action_allowed", lambda self: True)},
    ),
    "2018-17196": Attack(
        a_transaction_without_its_id,
        {"id": lambda patch: patch.setattr(produce_handler, "_check_transaction", lambda *given: None)},
    ),
    "2022-34917": Attack(
        memory_for_bytes_that_are_only_announced,
        {"received": lambda patch: patch.setattr(FrameReader, "_next_size", lambda self, filled: 1 << 30)},
    ),
}


@needs_sources
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_an_attack_fails_and_succeeds_without_its_guard(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not attack.succeeds()
    for remove in attack.guards.values():
        with monkeypatch.context() as patch:
            remove(patch)
            assert attack.succeeds()


# comparisons that take longer the more is right (CVE-2021-38153)

SECRET = re.compile(r"(?<![a-z])(password|proof|signature|hmac|stored_key|server_key|client_key)(?![a-z])")
SOURCES = Path(millbeck.__file__).parent


def compared_secrets(source: str) -> list[str]:
    """Comparisons by == or != (or in, of a collection) of something that is named like a secret."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops):
            sides = [ast.unparse(each) for each in (node.left, *node.comparators)]
            if any(SECRET.search(side) and not side.startswith("len(") for side in sides):
                found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("package", ["security", "server/requests", "registry"])
def test_secrets_are_compared_in_constant_time(package: str) -> None:
    for path in sorted((SOURCES / package).rglob("*.py")):
        assert not compared_secrets(path.read_text()), f"{path}: use hmac.compare_digest"


def test_a_comparison_of_a_secret_would_be_found() -> None:
    assert compared_secrets("if final.proof == expected: pass") == ["final.proof == expected"]
    assert compared_secrets("x = given != self.password") == ["given != self.password"]
    assert not compared_secrets("if len(final.proof) != size or not password: pass")
