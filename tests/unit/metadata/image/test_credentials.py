from __future__ import annotations

from millbeck.metadata.delta import advance
from millbeck.metadata.image import EMPTY, MetadataImage
from millbeck.metadata.image.credentials import (
    AclsImage,
    DelegationToken,
    DelegationTokensImage,
    ScramCredential,
    ScramImage,
)
from millbeck.security.acls import AccessControlEntry


def test_credentials_are_written_as_records_that_restore_them() -> None:
    entry = AccessControlEntry(
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:u",
        host="*",
        operation=3,
        permission_type=3,
    )
    token = DelegationToken(
        owner="User:o",
        requester="User:r",
        renewers=("User:a", "User:b"),
        issue_timestamp=1,
        max_timestamp=9,
        expiration_timestamp=5,
    )
    credential = ScramCredential(salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096)
    image = MetadataImage(
        acls=AclsImage(by_id={b"2" * 16: entry, b"1" * 16: entry}),
        scram=ScramImage(by_user={(2, "u"): credential, (1, "u"): credential}),
        delegation_tokens=DelegationTokensImage(by_id={"t": token}),
    )
    assert [record.id for record in image.acls.records()] == [b"1" * 16, b"2" * 16]
    assert [record.mechanism for record in image.scram.records()] == [1, 2]
    restored, _ = advance(EMPTY, image.records(), offset=-1, epoch=-1, timestamp_ms=-1)
    assert restored == image
