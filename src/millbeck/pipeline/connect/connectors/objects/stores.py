"""Which store the settings name, and what its errors mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from millbeck.kernel.extras import needs_extra
from millbeck.pipeline.connect.errors import ConnectError, RetriableError

with needs_extra("objects"):
    import obstore
    from obstore.store import AzureStore, GCSStore, LocalStore, S3Store

_LASTING: Final = (
    "FileNotFoundError",
    "UnauthenticatedError",
    "PermissionDeniedError",
    "NotFoundError",
    "InvalidPathError",
)
_LASTING_CODES: Final = (
    "<Code>NoSuchBucket",
    "<Code>AccessDenied",
    "<Code>InvalidAccessKeyId",
    "<Code>SignatureDoesNot",
)
_AT_ONCE: Final = 5 * 1024 * 1024
"""Larger objects are written in parts, which appear as one object at the end."""


class ObjectFiles:
    """Whole files below a folder of a store."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._store, folder = _opened(values)
        self._root = "/".join(part for part in (folder, values["topics.dir"].strip("/")) if part)

    def path(self, *parts: str) -> str:
        return "/".join(part for part in (self._root, *parts) if part)

    def put(self, path: str, content: bytes) -> None:
        """Write a file; it appears whole, or replaces one of this name."""
        try:
            obstore.put(self._store, path, content, use_multipart=len(content) > _AT_ONCE)
        except Exception as error:
            raise meaning(error, "write to") from error

    def get(self, path: str) -> bytes:
        try:
            return bytes(obstore.get(self._store, path).bytes())
        except Exception as error:
            raise meaning(error, "read from") from error

    def list(self, folder: str) -> list[tuple[str, int]]:
        """Paths and sizes of all files in a folder and below."""
        found: list[tuple[str, int]] = []
        try:
            for batch in obstore.list(self._store, prefix=folder):
                found += [(str(each["path"]), int(each["size"])) for each in batch]
        except Exception as error:
            raise meaning(error, "list") from error
        return found

    def problem(self) -> str | None:
        """What a look at the store tells; None if it cannot be reached."""
        try:
            next(iter(obstore.list(self._store, prefix=self._root or None, chunk_size=1)), None)
        except Exception as error:
            failure = meaning(error, "list")
            return None if isinstance(failure, RetriableError) else str(failure)
        return None


def _opened(values: Mapping[str, Any]) -> tuple[Any, str]:
    """The store, and the folder that its URL names."""
    url = urlsplit(values["store.url"] or "")
    folder = unquote(url.path).strip("/")
    match url.scheme:
        case "file":
            return LocalStore(prefix=unquote(url.path) or "/", mkdir=True), ""
        case "gs":
            secret = values["gcs.credentials.json"]
            extra = {} if secret is None else {"service_account_key": secret.reveal()}
            return GCSStore(bucket=url.netloc, **extra), folder
        case "az" | "azure" | "abfs" | "abfss":
            container, _, host = url.netloc.partition("@")
            key = values["azure.storage.key"]
            given: dict[str, Any] = {"account_name": values["azure.storage.account"] or host.partition(".")[0] or None}
            given["account_key"] = None if key is None else key.reveal()
            known: dict[str, Any] = {name: text for name, text in given.items() if text}
            return AzureStore(container_name=container, **known), folder
    options: dict[str, Any] = {"region": values["s3.region"]}
    if values["aws.access.key.id"]:
        options["access_key_id"] = values["aws.access.key.id"]
    if values["aws.secret.access.key"] is not None:
        options["secret_access_key"] = values["aws.secret.access.key"].reveal()
    bucket = url.netloc if url.scheme in ("s3", "s3a") else values["s3.bucket.name"]
    if url.scheme in ("http", "https"):
        options["endpoint"] = f"{url.scheme}://{url.netloc}"
        options["virtual_hosted_style_request"] = False
        options["client_options"] = {"allow_http": url.scheme == "http"}
        folder = ""
    return S3Store(bucket, **options), folder


def meaning(error: Exception, act: str) -> Exception:
    """A store that refuses lasts; one that does not answer may come back."""
    if isinstance(error, ConnectError):
        return error
    text = f"cannot {act} the store: {type(error).__name__}: {str(error).strip()}"[:1000]
    if type(error).__name__ in _LASTING or any(code in text for code in _LASTING_CODES):
        return ConnectError(f"{text}: check store.url, s3.bucket.name and the credentials")
    return RetriableError(text)
