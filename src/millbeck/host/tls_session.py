"""The TLS state of one connection between two memory buffers: ciphertext in and out, no socket.

The memory buffers of OpenSSL keep their largest size as long as the connection lives. So ciphertext goes in and out in
pieces of 64 KiB: larger pieces are no faster (docs/adr/0015), and the connection keeps less memory.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Any, Final

from millbeck.kernel.environment import Bytes
from millbeck.kernel.tls import TlsFailed, TlsFailure

PIECE_BYTES: Final = 64 << 10
_HANDSHAKE_RECORD: Final = 0x16
_ALERT_RECORD: Final = 0x15
_NO_INPUT: Final = memoryview(b"")
_ALERT_PREFIXES: Final = ("TLSV1_ALERT_", "TLSV13_ALERT_", "SSLV3_ALERT_", "SSL/TLS_ALERT_")


class TlsSession:
    __slots__ = ("_error", "_incoming", "_input", "_outgoing", "_read_into", "_ssl", "is_ended")

    def __init__(self, context: ssl.SSLContext, *, server_name: str | None) -> None:
        """``server_name`` is the host that a client connects to, None for a server."""
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ssl = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_name is None, server_hostname=server_name
        )
        # Given a buffer it returns a count. Some clients make a record of every few hundred bytes: a read for each.
        self._read_into: Any = self._ssl._sslobj.read  # type: ignore[attr-defined]
        self._input = _NO_INPUT  # received ciphertext that OpenSSL has not got yet
        self._error: ssl.SSLError | None = None
        self.is_ended = False
        """Whether the peer has sent close_notify."""

    @property
    def ssl_object(self) -> ssl.SSLObject:
        return self._ssl

    # handshake

    def handshake(self) -> bool:
        """Process the received bytes; returns whether the handshake is complete. Raises ``ssl.SSLError``.

        May run on a thread, while nothing else uses the session.
        """
        try:
            self._ssl.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def certificate(self) -> bytes | None:
        """The peer's certificate as DER; None if it sent none, or if none was requested."""
        return self._ssl.getpeercert(binary_form=True)

    # ciphertext

    def receive(self, data: Bytes) -> None:
        """Add received bytes, which are copied."""
        self._incoming.write(data)

    def lend(self, data: memoryview) -> None:
        """Let `read` use received bytes without copying them; `take_back` must be called before they change."""
        self._input = data

    def take_back(self) -> None:
        """Copy the unread rest of the bytes passed to `lend`."""
        if self._input:
            self._incoming.write(self._input)
        self._input = _NO_INPUT

    def output(self) -> bytes:
        """Ciphertext to send: handshake messages, alerts, key updates."""
        return self._outgoing.read() if self._outgoing.pending else b""

    # plaintext

    @property
    def has_input(self) -> bool:
        return bool(self._input) or self._incoming.pending > 0 or self._ssl.pending() > 0 or self._error is not None

    def read(self, buffer: memoryview) -> int:
        """Decrypt received bytes until ``buffer`` is full or they end; returns how many were written to it.

        An error is raised (``ssl.SSLError``), and `is_ended` set, only after everything before it was returned.
        """
        if self._error is not None:
            raise self._error
        room = len(buffer)
        filled = 0
        incoming, read_into = self._incoming, self._read_into
        try:
            while filled < room and (incoming.pending or self._ssl.pending() or self._feed()):
                try:
                    count = read_into(room - filled, buffer[filled:] if filled else buffer)
                except ssl.SSLWantReadError:
                    if not self._feed():
                        break
                else:
                    if count == 0:
                        self._end()
                    filled += count
        except ssl.SSLZeroReturnError:
            self._end()
        except ssl.SSLError as error:
            self._input = _NO_INPUT
            if not filled:
                raise
            self._error = error.with_traceback(None)
        return filled

    def _end(self) -> None:
        """Handle the peer's close_notify; data after it is dropped."""
        self.is_ended = True
        self._input = _NO_INPUT
        self._incoming.read()

    def _feed(self) -> bool:
        data = self._input
        if not data:
            return False
        self._incoming.write(data[:PIECE_BYTES])
        self._input = data[PIECE_BYTES:]
        return True

    def encrypt(self, buffers: Sequence[Bytes]) -> list[bytes]:
        """Encrypt buffers. Small ones are joined, because each call creates at least one TLS record."""
        encrypted: list[bytes] = []
        joined: list[Bytes] = []
        joined_bytes = 0
        for buffer in buffers:
            size = len(buffer)
            if joined_bytes + size > PIECE_BYTES and joined:
                self._encrypt(joined, encrypted)
                joined = []
                joined_bytes = 0
            if size > PIECE_BYTES:
                view = memoryview(buffer)
                for position in range(0, size, PIECE_BYTES):
                    self._encrypt([view[position : position + PIECE_BYTES]], encrypted)
            else:
                joined.append(buffer)
                joined_bytes += size
        if joined:
            self._encrypt(joined, encrypted)
        return encrypted

    def _encrypt(self, joined: list[Bytes], encrypted: list[bytes]) -> None:
        data = joined[0] if len(joined) == 1 else b"".join(joined)
        written = self._ssl.write(data)
        while written < len(data):
            written += self._ssl.write(memoryview(data)[written:])
        encrypted.append(self._outgoing.read())

    def close_notify(self) -> bytes:
        """The ciphertext of close_notify, which ends this side's data."""
        try:
            self._ssl.unwrap()
        except ssl.SSLError:
            pass  # the peer's answer is not awaited
        return self._outgoing.read()


def may_be_tls(first_byte: int) -> bool:
    """Whether a connection's first byte can be that of a TLS record; Kafka's plain requests begin with a zero."""
    return first_byte in (_HANDSHAKE_RECORD, _ALERT_RECORD)


def failure_of(error: ssl.SSLError | ssl.CertificateError) -> TlsFailed:
    """An error message on which a user can act."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsFailed(TlsFailure.CERTIFICATE, f"the certificate is refused: {error.verify_message}")
    reason = getattr(error, "reason", None) or str(error)
    for prefix in _ALERT_PREFIXES:
        if reason.startswith(prefix):
            words = reason.removeprefix(prefix).lower().replace("_", " ")
            return TlsFailed(TlsFailure.REFUSED_BY_PEER, f"the peer refused the connection with the alert: {words}")
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST"):
        return TlsFailed(TlsFailure.NOT_TLS, "the peer does not speak TLS")
    words = reason.lower().replace("_", " ")
    is_certificate = "certificate" in words
    return TlsFailed(TlsFailure.CERTIFICATE if is_certificate else TlsFailure.PROTOCOL, words)
