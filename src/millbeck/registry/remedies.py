"""What to do about errors of the brokers that a registry cannot mend."""

from __future__ import annotations

from typing import Final

from millbeck.kernel.errors import (
    ApiError,
    GroupAuthorizationFailed,
    InvalidSessionTimeout,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)

_ADD: Final = "millbeck acl add --allow-principal User:NAME"


def with_remedy(error: ApiError, *, topic: str, group: str, transactional_id: str) -> ApiError:
    """The error with the ACLs that the registry's user lacks; any other error as it is."""
    match error:
        case TopicAuthorizationFailed():
            what = f"topic {topic}"
            operations = ["READ", "WRITE", "DESCRIBE", "CREATE", "DESCRIBE_CONFIGS"]
            resource = f"--topic {topic}"
        case GroupAuthorizationFailed():
            what = f"group {group} (schema.registry.group.id)"
            operations, resource = ["READ"], f"--group {group}"
        case TransactionalIdAuthorizationFailed():
            what = f"transactional id {transactional_id}"
            operations, resource = ["WRITE", "DESCRIBE"], f"--transactional-id {transactional_id}"
        case InvalidSessionTimeout():
            return InvalidSessionTimeout(
                "schema.registry.group.session.timeout.ms is not between group.min.session.timeout.ms and "
                "group.max.session.timeout.ms of the brokers: change one of them"
            )
        case _:
            return error
    options = " ".join(f"--operation {each}" for each in operations)
    return type(error)(
        f"the user of the registry (kafkastore.sasl.*, kafkastore.ssl.*) may not use {what}: "
        f"{_ADD} {options} {resource}"
    )
