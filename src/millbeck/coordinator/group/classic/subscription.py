"""The topics a consumer subscribes to, read out of the opaque metadata it joins with.

Members of type "consumer" send a version (int16), the topics (array of strings), user data, and from version 1 on more
fields. Every version begins like version 0, so that much is read whatever the version says.
"""

from __future__ import annotations

from millbeck.wire import codec
from millbeck.wire.errors import DecodeError
from millbeck.wire.schema import Kind, array, message, string

CONSUMER_PROTOCOL_TYPE = "consumer"


@message(kind=Kind.DATA, versions="0", flexible="none")
class ConsumerSubscription:
    """The beginning that all versions of a consumer's subscription share."""

    topics: list[str] = array(of=string)


def subscribed_topics(metadata: bytes) -> list[str]:
    """The topics; DecodeError when the bytes are not a consumer's subscription."""
    if len(metadata) < 2 or metadata[0] & 0x80:
        raise DecodeError("a consumer subscription begins with a version")
    return codec.decoder(ConsumerSubscription, 0)(metadata, 2)[0].topics
