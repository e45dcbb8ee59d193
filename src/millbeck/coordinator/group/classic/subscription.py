"""Decodes the topics a consumer subscribes to from its protocol metadata.

Members of protocol type "consumer" send a version (int16), the topics (array of strings), user data and, from version 1
on, more fields. All versions start with the fields of version 0, so those are decoded whatever the version is.
"""

from __future__ import annotations

from millbeck.wire import codec
from millbeck.wire.errors import DecodeError
from millbeck.wire.schema import Kind, array, message, string

CONSUMER_PROTOCOL_TYPE = "consumer"


@message(kind=Kind.DATA, versions="0", flexible="none")
class ConsumerSubscription:
    """The fields that all versions of a consumer's subscription start with."""

    topics: list[str] = array(of=string)


def subscribed_topics(metadata: bytes) -> list[str]:
    """Decode the subscribed topics; raises DecodeError if the bytes are not a consumer subscription."""
    if len(metadata) < 2 or metadata[0] & 0x80:
        raise DecodeError("a consumer subscription must start with a version")
    return codec.decoder(ConsumerSubscription, 0)(metadata, 2)[0].topics
