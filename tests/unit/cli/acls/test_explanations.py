"""What is explained agrees with the plain model, and the ACL that it proposes helps."""

from __future__ import annotations

from random import Random

from millbeck.cli.acls.explanations import explain, is_allowed, make_authorizer
from millbeck.cli.acls.files import AclAssertion
from millbeck.security.acls import AccessControlEntry
from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType
from millbeck.security.standard_authorizer import Rule
from tests.model.security.random_acls import random_model, random_question

QUESTION = AclAssertion(
    principal="User:alice",
    host="10.0.0.1",
    operation=Operation.READ,
    resource_type=ResourceType.TOPIC,
    resource_name="orders",
)


def entry(
    permission: Permission, name: str = "orders", pattern: PatternType = PatternType.LITERAL
) -> AccessControlEntry:
    return AccessControlEntry(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=pattern,
        principal="User:alice",
        host="*",
        operation=Operation.READ,
        permission_type=permission,
    )


def test_ten_thousand_random_questions_agree_with_the_model_and_are_helped() -> None:
    random = Random(5)
    helped = 0
    for _ in range(250):
        model = random_model(random)
        authorizer = make_authorizer(
            model.entries, model.super_users, allow_everyone=model.allow_everyone_if_no_acl_found
        )
        for _ in range(40):
            asked = random_question(random)
            found = explain(
                authorizer,
                model.entries,
                AclAssertion(
                    principal=asked.principal,
                    host=asked.host,
                    operation=asked.operation,
                    resource_type=asked.resource_type,
                    resource_name=asked.resource_name,
                ),
            )
            assert found.decision.is_allowed == model.allows(asked), (model, asked)
            if not found.decision.is_allowed:
                helped += 1
                left = [each for each in model.entries if each not in found.denying]
                proposed = [] if found.would_allow is None else [found.would_allow]
                after = make_authorizer([*left, *proposed], (), allow_everyone=False)
                assert is_allowed(after, found.question), (model, asked, found)
    assert helped > 1000


def test_denied_for_want_of_an_acl() -> None:
    found = explain(make_authorizer((), (), allow_everyone=False), (), QUESTION)
    assert list(found.lines()) == [
        "User:alice from 10.0.0.1: read on topic orders: DENIED",
        "  no ACL allows it",
        "  the smallest ACL that would allow it: allow User:alice from 10.0.0.1 to read topic orders",
    ]


def test_denied_by_several() -> None:
    entries = [entry(Permission.ALLOW), entry(Permission.DENY), entry(Permission.DENY, "ord", PatternType.PREFIXED)]
    found = explain(make_authorizer(entries, (), allow_everyone=False), entries, QUESTION)
    lines = list(found.lines())
    assert lines[1:] == [
        "  by the ACL: deny User:alice to read topic orders",
        "  also denied by: deny User:alice to read every topic whose name begins with ord",
        "  a DENY takes precedence over every ALLOW: remove the denying ACLs first",
    ]
    assert found.row()["would_allow"] is None


def test_allowed_by_an_acl_by_rank_or_by_default() -> None:
    entries = [entry(Permission.ALLOW)]
    by_acl = explain(make_authorizer(entries, (), allow_everyone=False), entries, QUESTION)
    assert list(by_acl.lines())[1] == "  by the ACL: allow User:alice to read topic orders"
    rank = explain(make_authorizer((), ["User:alice"], allow_everyone=False), (), QUESTION)
    assert rank.decision.rule is Rule.SUPER_USER
    default = explain(make_authorizer((), (), allow_everyone=True), (), QUESTION)
    assert "allow.everyone.if.no.acl.found" in list(default.lines())[1]
