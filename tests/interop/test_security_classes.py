"""Decisions of the authorizer, and names of principals, beside Kafka's own classes: the same for random questions.

Only the classes are asked, in one process of Java: StandardAuthorizer, KerberosShortNamer, SslPrincipalMapper, and
Java's X500Principal for distinguished names.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

from cryptography import x509
from cryptography.x509.name import _ASN1Type

from millbeck.kernel.errors import InvalidConfig
from millbeck.security.kerberos_names import KerberosNames, NoKerberosRule
from millbeck.security.principal import parse_principal
from millbeck.security.standard_authorizer import StandardAuthorizer
from millbeck.security.tls import der
from millbeck.security.tls.distinguished_name import format_name
from millbeck.security.tls.principal_mapping import NoRuleApplies, PrincipalMapping
from millbeck.simulation.checkers.acl_decisions import AclModel
from tests.interop.cluster import _LIGHT
from tests.model.security.random_acls import random_model, random_question
from tools import peers

SOURCE = Path(__file__).parent / "java" / "SecurityQuestions.java"
DECISION_COUNT = 100_000
QUESTIONS_PER_WORLD = 200
NAME_COUNT = 20_000


def answers(lines: list[str]) -> list[str | None]:
    """Kafka's answers; None where it raises an exception."""
    command = ["java", *_LIGHT, "-cp", f"{peers.install('kafka')}/*", str(SOURCE)]
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=250)
    assert done.returncode == 0, done.stderr.decode()
    said = done.stdout.decode().split("\n")[:-1]
    assert len(said) == len(lines)
    return [_unescaped(line[1:]) if line[0] == "=" else None for line in said]


def _unescaped(text: str) -> str:
    return "\\".join(part.replace("\\n", "\n").replace("\\r", "\r") for part in text.split("\\\\"))


def authorizer_of(model: AclModel) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(
        model.super_users, allow_everyone_if_no_acl_found=model.allow_everyone_if_no_acl_found
    )
    for _ in authorizer.replace(model.entries):
        pass
    authorizer.loaded()
    return authorizer


def test_decisions_are_those_of_kafkas_authorizer() -> None:
    random = Random(19)
    lines: list[str] = []
    expected: list[str] = []
    decided = allowed = 0
    while decided < DECISION_COUNT:
        model = random_model(random)
        authorizer = authorizer_of(model)
        lines.append(f"world\t{';'.join(model.super_users)}\t{str(model.allow_everyone_if_no_acl_found).lower()}")
        # Controllers write no entry twice, and Kafka's class refuses one.
        entries = list(dict.fromkeys(model.entries))
        for entry in entries:
            fields = (
                int(entry.resource_type),
                entry.resource_name,
                int(entry.pattern_type),
                entry.principal,
                entry.host,
                int(entry.operation),
                int(entry.permission_type),
            )
            lines.append("\t".join(("acl", *map(str, fields))))
        expected += [""] * (1 + len(entries))
        for _ in range(QUESTIONS_PER_WORLD):
            asked = random_question(random)
            if asked.resource_name.startswith("*") and asked.resource_name != "*":
                # Kafka's class does not find ACLs of the literal name * for other names that begin with it, so a DENY
                # for every group is none for the group *a. Here they apply to every name.
                continue
            principal = parse_principal(asked.principal)
            one = authorizer.authorize(principal, asked.host, asked.operation, asked.resource_type, asked.resource_name)
            some = authorizer.authorize_any(principal, asked.host, asked.operation, asked.resource_type)
            expected.append(f"{one} {some}".lower())
            lines.append(
                f"ask\t{asked.principal}\t{asked.host}\t{int(asked.operation)}\t{int(asked.resource_type)}\t"
                f"{asked.resource_name}"
            )
            decided += 1
            allowed += one
    differing = [
        (line, mine, theirs)
        for line, mine, theirs in zip(lines, expected, answers(lines), strict=True)
        if mine != theirs
    ]
    assert differing == [], f"{len(differing)} of {decided} decisions differ"
    assert decided // 5 < allowed < decided * 4 // 5, "the questions are too one-sided to show anything"
    print(f"{decided} decisions, {allowed} allowed")


# names


def test_kerberos_names_are_kafkas() -> None:
    random = Random(20)
    lines: list[str] = []
    expected: list[str | None] = []
    for _ in range(NAME_COUNT):
        realm = random.choice(("R", "R", "S"))
        rules = ",".join(_kerberos_rule(random) for _ in range(random.randint(1, 3)))
        name = _kerberos_name(random)
        lines.append(f"kerberos\t{realm}\t{rules}\t{name}")
        try:
            expected.append(KerberosNames(rules.split(","), realm).short_name(name))
        except (NoKerberosRule, InvalidConfig):
            expected.append(None)
    _compare(lines, expected)


def _kerberos_name(random: Random) -> str:
    parts = [random.choice(("a", "ab", "Ab", "b")) for _ in range(random.choice((1, 1, 2, 2, 3)))]
    return "/".join(parts) + random.choice(("@R", "@R", "@S", "@R@S"))


def _kerberos_rule(random: Random) -> str:
    if random.random() < 0.25:
        return "DEFAULT"
    count = random.choice((1, 2))
    # A number that is too high for the name is refused at the start here, and by Kafka when the rule is used.
    form = random.choice(("$1", "$1", "$1@$0", "$1/$0", *(("$1-$2", "$2$1x") if count == 2 else ())))
    matching = random.choice(("", "", "(a.*)", "(.*@R)", "(.*)", "([A-Z].*)"))
    change = random.choice(("", "", "s/a/x/", "s/a/x/g", "s/@.*//", "s/(.)b/$1-/", "s/[/@]//g", "s/a/x/gg"))
    return f"RULE:[{count}:{form}]{matching}{change}{random.choice(('', '', '/L', '/U', 'L'))}"


def test_names_of_certificates_are_kafkas() -> None:
    random = Random(21)
    lines: list[str] = []
    expected: list[str | None] = []
    for _ in range(NAME_COUNT):
        rules = ", ".join(_certificate_rule(random) for _ in range(random.randint(1, 3)))
        name = ",".join(
            f"{kind}={random.choice(('alice', 'Ab c', 'x-1', 'a/b'))}"
            for kind in random.choice((("CN",), ("CN", "OU"), ("CN", "OU", "O"), ("O",)))
        )
        lines.append(f"certificate\t{rules}\t{name}")
        try:
            expected.append(PrincipalMapping(rules).name_of(name))
        except (NoRuleApplies, InvalidConfig):
            expected.append(None)
    _compare(lines, expected)


def _certificate_rule(random: Random) -> str:
    if random.random() < 0.25:
        return random.choice(("DEFAULT", "DEFAULT", "DEFAULT ", ""))
    pattern = random.choice(("^CN=(.*?)$", "^CN=(.*?),OU=(.*?)$", "^CN=(.*?),.*$", "CN=([^,]*).*", "^O=(.*)", "(.*)"))
    replacement = random.choice(("$1", "$1", "u-$1", "$1@x", "\\\\/$1", "x"))
    return f"RULE:{pattern}/{replacement}/{random.choice(('', '', 'L', 'U'))}"


KINDS = [
    *("2.5.4.3", "2.5.4.6", "2.5.4.7", "2.5.4.8", "2.5.4.9", "2.5.4.10", "2.5.4.11", "2.5.4.5", "2.5.4.4", "2.5.4.12"),
    *("0.9.2342.19200300.100.1.25", "0.9.2342.19200300.100.1.1", "1.2.840.113549.1.9.1", "1.3.6.1.4.1.99999.7"),
]
PIECES = ("a", "Zoë", " ", "  ", ",", "+", '"', "\\", "<", ">", ";", "#", "=", "日本", "x y", "\t", "/")


def _names(random: Random) -> Iterator[bytes]:
    while True:
        parts = []
        for _ in range(random.randint(1, 4)):
            attributes = {
                x509.NameAttribute(
                    x509.ObjectIdentifier(kind),
                    "US" if kind == "2.5.4.6" else "".join(random.choices(PIECES, k=random.randint(1, 4))),
                    None if kind == "2.5.4.6" else _ASN1Type.UTF8String,
                )
                for kind in random.sample(KINDS, random.choice((1, 1, 1, 2)))
            }
            parts.append(x509.RelativeDistinguishedName(attributes))
        yield x509.Name(parts).public_bytes()


def test_distinguished_names_are_javas() -> None:
    encoded = [name for name, _ in zip(_names(Random(22)), range(NAME_COUNT), strict=False)]
    expected: list[str | None] = [format_name(der.read_all(name)[0]) for name in encoded]
    _compare([f"name\t{name.hex()}" for name in encoded], expected)


def _compare(lines: list[str], mine: list[str | None]) -> None:
    theirs = answers(lines)
    differing = [each for each in zip(lines, mine, theirs, strict=True) if each[1] != each[2]]
    assert differing == [], f"{len(differing)} of {len(lines)} differ, such as {differing[0]}"
    named = sum(each is not None for each in mine)
    assert named > len(mine) // 10, "the questions are too one-sided to show anything"
    print(f"{len(lines)} names, {named} with a principal")
