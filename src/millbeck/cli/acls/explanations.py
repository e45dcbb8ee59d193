"""Explanations of authorization decisions: the deciding ACL, and the smallest ACL that would allow a denied operation.

Decisions are computed here by the broker's rules, from the ACLs that the cluster describes, so this works for Apache
Kafka as well. Superusers cannot always be read from a broker, so the command has an option for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from millbeck.cli.acls.files import AclAssertion
from millbeck.cli.acls.words import acl_line, entry_row
from millbeck.security.acls import AccessControlEntry
from millbeck.security.authorizer import Operation, PatternType, Permission
from millbeck.security.principal import parse_principal
from millbeck.security.standard_authorizer import AclDecision, Rule, StandardAuthorizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    question: AclAssertion
    decision: AclDecision
    denying: tuple[AccessControlEntry, ...]
    """All ACLs that deny it; each of them would have to be removed."""
    would_allow: AccessControlEntry | None
    """The smallest ACL that would allow it; None if it is allowed, or if no ACL would allow it."""

    def row(self) -> dict[str, object]:
        return {
            "question": str(self.question),
            "allowed": self.decision.is_allowed,
            "rule": self.decision.rule.value,
            "acl": None if self.decision.entry is None else entry_row(self.decision.entry),
            "denied_by": [entry_row(entry) for entry in self.denying],
            "would_allow": None if self.would_allow is None else entry_row(self.would_allow),
        }

    def lines(self) -> Iterable[str]:
        decision = self.decision
        yield f"{self.question}: {'ALLOWED' if decision.is_allowed else 'DENIED'}"
        match decision.rule:
            case Rule.SUPER_USER:
                yield f"  {self.question.principal} is a superuser (super.users)"
            case Rule.DEFAULT_ALLOW:
                yield "  no ACL covers the resource, and allow.everyone.if.no.acl.found is true"
            case Rule.DEFAULT_DENY:
                yield "  no ACL allows it"
            case Rule.ACL:
                assert decision.entry is not None
                yield f"  by the ACL: {acl_line(decision.entry)}"
        for entry in self.denying:
            if entry != decision.entry:
                yield f"  also denied by: {acl_line(entry)}"
        if self.denying:
            yield "  a DENY takes precedence over every ALLOW: remove the denying ACLs first"
        if self.would_allow is not None:
            yield f"  the smallest ACL that would allow it: {acl_line(self.would_allow)}"


def make_authorizer(
    entries: Iterable[AccessControlEntry], super_users: Iterable[str], *, allow_everyone: bool
) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(tuple(super_users), allow_everyone_if_no_acl_found=allow_everyone)
    authorizer.change((), entries)
    authorizer.loaded()
    return authorizer


def explain(
    authorizer: StandardAuthorizer, entries: Iterable[AccessControlEntry], question: AclAssertion
) -> Explanation:
    decision = authorizer.explain(
        parse_principal(question.principal),
        question.host,
        question.operation,
        question.resource_type,
        question.resource_name,
    )
    denying: tuple[AccessControlEntry, ...] = ()
    if not decision.is_allowed:
        denying = tuple(entry for entry in entries if _denies(entry, question))
    return Explanation(
        question=question,
        decision=decision,
        denying=denying,
        would_allow=None if decision.is_allowed else _smallest(question, denying, entries),
    )


def _denies(entry: AccessControlEntry, question: AclAssertion) -> bool:
    """Whether this entry alone denies the operation, even if another ACL allows everything."""
    if entry.permission_type != Permission.DENY:
        return False
    everything = AccessControlEntry(
        resource_type=question.resource_type,
        resource_name="*",
        pattern_type=PatternType.LITERAL,
        principal="User:*",
        host="*",
        operation=Operation.ALL,
        permission_type=Permission.ALLOW,
    )
    return not is_allowed(make_authorizer((everything, entry), (), allow_everyone=False), question)


def _smallest(
    question: AclAssertion, denying: tuple[AccessControlEntry, ...], entries: Iterable[AccessControlEntry]
) -> AccessControlEntry | None:
    """The smallest ACL that would allow it; None if removing the denying ACLs is enough."""
    left = [entry for entry in entries if entry not in denying]
    if denying and is_allowed(make_authorizer(left, (), allow_everyone=False), question):
        return None
    return AccessControlEntry(
        resource_type=question.resource_type,
        resource_name=question.resource_name,
        pattern_type=PatternType.LITERAL,
        principal=question.principal,
        host=question.host,
        operation=question.operation,
        permission_type=Permission.ALLOW,
    )


def is_allowed(authorizer: StandardAuthorizer, question: AclAssertion) -> bool:
    return authorizer.authorize(
        parse_principal(question.principal),
        question.host,
        question.operation,
        question.resource_type,
        question.resource_name,
    )


def summary(explanations: Iterable[Explanation]) -> Mapping[str, object]:
    listed = list(explanations)
    return {
        "allowed": all(each.decision.is_allowed for each in listed),
        "decisions": [each.row() for each in listed],
    }
