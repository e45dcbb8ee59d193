"""The indexed and caching authorizer against the plain model: the same answers, through every change of the ACLs."""

from __future__ import annotations

from random import Random

from millbeck.security.acls import AccessControlEntry
from millbeck.security.authorizer import ResourceType
from millbeck.security.principal import parse_principal
from millbeck.security.standard_authorizer import StandardAuthorizer
from millbeck.simulation.checkers.acl_decisions import AclModel, AclQuestion
from tests.model.security.random_acls import OPERATIONS, random_entry, random_model, random_question

DECISION_COUNT = 100_000
QUESTIONS_PER_STATE = 40
STATES_PER_WORLD = 5


def authorizer_of(model: AclModel) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(
        model.super_users, allow_everyone_if_no_acl_found=model.allow_everyone_if_no_acl_found
    )
    for _ in authorizer.replace(model.entries):
        pass
    authorizer.loaded()
    return authorizer


def answers(authorizer: StandardAuthorizer, asked: AclQuestion) -> tuple[bool, bool, bool]:
    principal = parse_principal(asked.principal)
    explained = authorizer.explain(principal, asked.host, asked.operation, asked.resource_type, asked.resource_name)
    return (
        authorizer.authorize(principal, asked.host, asked.operation, asked.resource_type, asked.resource_name),
        explained.is_allowed,
        authorizer.authorize_any(principal, asked.host, asked.operation, asked.resource_type),
    )


def test_decisions_equal_the_plain_models_through_changes() -> None:
    random = Random(1)
    decided = allowed = 0
    while decided < DECISION_COUNT:
        model = random_model(random)
        authorizer = authorizer_of(model)
        asked = [random_question(random) for _ in range(QUESTIONS_PER_STATE)]
        for _ in range(STATES_PER_WORLD):
            for question in asked:
                expected = model.allows(question)
                found = answers(authorizer, question)
                assert found == (expected, expected, model.allows_any(question)), (model, question)
                allowed += expected
            decided += len(asked)
            model = changed(model, authorizer, random)
    assert decided // 5 < allowed < decided * 4 // 5, "the questions are too one-sided to show anything"


def changed(model: AclModel, authorizer: StandardAuthorizer, random: Random) -> AclModel:
    """Remove some entries and add others, in both; cached decisions must not survive it."""
    removed = [entry for entry in model.entries if random.random() < 0.3]
    added = [random_entry(random) for _ in range(random.randint(0, 4))]
    kept: list[AccessControlEntry] = list(model.entries)
    for entry in removed:
        kept.remove(entry)
    authorizer.change(removed, added)
    entries = (*kept, *added)
    assert authorizer.count == len(entries)
    return AclModel(
        entries=entries,
        super_users=model.super_users,
        allow_everyone_if_no_acl_found=model.allow_everyone_if_no_acl_found,
    )


def test_removing_every_entry_leaves_nothing_behind() -> None:
    random = Random(2)
    entries = [random_entry(random) for _ in range(500)]
    authorizer = authorizer_of(AclModel(entries=tuple(entries), allow_everyone_if_no_acl_found=True))
    random.shuffle(entries)
    authorizer.change(entries, ())
    assert authorizer.count == 0
    for _ in range(500):
        assert answers(authorizer, random_question(random)) == (True, True, True)


def test_the_explanation_names_an_acl_that_decides() -> None:
    """Alone with what covers the resource, the named entry gives the same decision."""
    random = Random(3)
    named = 0
    for _ in range(300):
        model = random_model(random)
        authorizer = authorizer_of(model)
        for _ in range(20):
            asked = random_question(random)
            decision = authorizer.explain(
                parse_principal(asked.principal), asked.host, asked.operation, asked.resource_type, asked.resource_name
            )
            if decision.entry is not None:
                named += 1
                assert decision.entry in model.entries
                assert AclModel(entries=(decision.entry,)).allows(asked) == decision.is_allowed
    assert named > 500


def test_every_operation_of_every_type_is_asked_about() -> None:
    random = Random(4)
    asked = {(each.resource_type, each.operation) for each in (random_question(random) for _ in range(20_000))}
    assert asked == {(kind, operation) for kind in list(ResourceType)[2:] for operation in OPERATIONS}
