"""Declares messages: one class for all versions of a message.

    @struct
    class FetchTopic:
        topic: str = string(versions="0-12", ignorable=True)
        topic_id: bytes = uuid(versions="13+", ignorable=True)
        partitions: list[FetchPartition] = array(of=FetchPartition)

    @message(kind=Kind.REQUEST, api_key=1, versions="4-18", flexible="12+")
    class FetchRequest:
        \"\"\"Long-poll read. Version 13 has topic ids (KIP-516).\"\"\"

        cluster_id: str | None = string(versions="12+", nullable="12+", tag=0, default=None, ignorable=True)
        replica_id: int = int32(versions="0-14", default=-1, doc="Broker id of a follower, -1 for a consumer.")
        replica_state: ReplicaState = nested(of=ReplicaState, versions="15+", tag=1)
        topics: list[FetchTopic] = array(of=FetchTopic)
        names: list[str] | None = array(of=string, nullable="0+", default=None)

    request = FetchRequest(replica_id=3)        # every argument has a default; their order is the declaration's
    body = codec.encoder(FetchRequest, 12)(request)
    request, position = codec.decoder(FetchRequest, 12)(body)

A log record is declared the same way: ``@message(kind=Kind.RECORD, api_key=2, versions="0", flexible="0+")``, where the
key is the record's type; other structures (group protocol metadata, record keys) have ``kind=Kind.DATA`` and no key.
Only the body is encoded: the framing (a header, or a record's type and version) is added by the caller.

Versions are written "3", "2-5", "2+" or "none". A field's ``versions`` are those in which it exists, ``nullable`` those
in which it may be null, and ``flexible`` overrides the message's own range (a field that keeps its fixed-size length
prefix). A field with a ``tag`` is in the tagged section, in every version where it exists unless ``tagged`` narrows
that. A value other than the default in a version without the field is an error on encoding, or dropped if
``ignorable``.

Fields must be annotated with the Python type that follows from the declaration, and the module must start with ``from
__future__ import annotations``: the decorator compares the two texts. The resulting class has slots, ``__eq__`` and
``__repr__``; its constructor is compiled on the first call, so that declarations are cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, dataclass_transform

from millbeck.wire.errors import SchemaError

T = TypeVar("T")

LATEST = 32767
"""The maximum version number: the end of an open range."""


class Versions(NamedTuple):
    """An inclusive range of versions; empty if ``low`` is above ``high``."""

    low: int
    high: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    @property
    def is_empty(self) -> bool:
        return self.low > self.high


NONE = Versions(0, -1)


@lru_cache(maxsize=1024)
def parse_versions(text: str) -> Versions:
    if text == "none":
        return NONE
    low, dash, high = text.removesuffix("+").partition("-")
    try:
        if text.endswith("+"):
            return Versions(int(text[:-1]), LATEST)
        return Versions(int(low), int(high) if dash else int(low))
    except ValueError:
        raise SchemaError(f"not a version range: {text!r}") from None


class Kind(Enum):
    REQUEST = "request"
    RESPONSE = "response"
    HEADER = "header"
    RECORD = "record"
    DATA = "data"
    STRUCT = "struct"


class _Unset(Enum):
    MISSING = "missing"


MISSING = _Unset.MISSING


@dataclass(frozen=True, slots=True)
class Array:
    """The type of an array field; ``element`` is a primitive or a struct."""

    element: Primitive | type[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A declared field, with the name of the attribute that declares it."""

    name: str
    type: Primitive | Array | type[Any]
    versions: Versions
    nullable: Versions
    flexible: Versions | None
    tag: int | None
    tagged: Versions
    default: Any
    ignorable: bool
    doc: str

    def make_default(self) -> Any:
        """The field's default; a new object if it is mutable."""
        if self.default is not MISSING:
            return self.default
        if isinstance(self.type, Array):
            return []
        if isinstance(self.type, Primitive):
            # Records default to null where nullable.
            return b"" if self.type.default is None and self.nullable.is_empty else self.type.default
        return self.type()

    @property
    def has_mutable_default(self) -> bool:
        return self.default is MISSING and not isinstance(self.type, Primitive)


class _Declared:
    """The value assigned in the class body, until the decorator converts it to a `Field`."""

    __slots__ = ("options", "type")

    def __init__(self, type_: Primitive | Array | type[Any], options: dict[str, Any]) -> None:
        self.type = type_
        self.options = options

    def named(self, name: str) -> Field:
        options = self.options
        versions = parse_versions(options["versions"])
        tag = options["tag"]
        tagged = options["tagged"]
        flexible = options["flexible"]
        return Field(
            name=name,
            type=self.type,
            versions=versions,
            nullable=parse_versions(options["nullable"]),
            flexible=None if flexible is None else parse_versions(flexible),
            tag=tag,
            tagged=NONE if tag is None else versions if tagged is None else parse_versions(tagged),
            default=options["default"],
            ignorable=options["ignorable"],
            doc=options["doc"],
        )


@dataclass(frozen=True, slots=True)
class Primitive:
    """A scalar type. Calling it declares a field of that type; it is also used as ``of`` in `array`.

    ``format`` is the struct module's letter for fixed-width types, else empty.
    """

    name: str
    python: str
    format: str
    size: int
    default: Any

    def __call__(
        self,
        *,
        versions: str = "0+",
        default: Any = MISSING,
        nullable: str = "none",
        tag: int | None = None,
        tagged: str | None = None,
        ignorable: bool = False,
        flexible: str | None = None,
        doc: str = "",
    ) -> Any:
        return _declare(self, versions, default, nullable, tag, tagged, ignorable, flexible, doc)


boolean = Primitive("boolean", "bool", "?", 1, False)
int8 = Primitive("int8", "int", "b", 1, 0)
int16 = Primitive("int16", "int", "h", 2, 0)
int32 = Primitive("int32", "int", "i", 4, 0)
int64 = Primitive("int64", "int", "q", 8, 0)
uint16 = Primitive("uint16", "int", "H", 2, 0)
uint32 = Primitive("uint32", "int", "I", 4, 0)
float64 = Primitive("float64", "float", "d", 8, 0.0)
uuid = Primitive("uuid", "bytes", "16s", 16, bytes(16))
string = Primitive("string", "str", "", 0, "")
bytes_ = Primitive("bytes", "bytes", "", 0, b"")
records = Primitive("records", "bytes", "", 0, None)


def array(
    *,
    of: Primitive | type[Any],
    versions: str = "0+",
    default: Any = MISSING,
    nullable: str = "none",
    tag: int | None = None,
    tagged: str | None = None,
    ignorable: bool = False,
    flexible: str | None = None,
    doc: str = "",
) -> Any:
    """Declare an array field; the default is an empty list, or ``default=None`` if nullable."""
    return _declare(Array(of), versions, default, nullable, tag, tagged, ignorable, flexible, doc)


def nested(
    *,
    of: type[Any],
    versions: str = "0+",
    default: Any = MISSING,
    nullable: str = "none",
    tag: int | None = None,
    tagged: str | None = None,
    ignorable: bool = False,
    flexible: str | None = None,
    doc: str = "",
) -> Any:
    """Declare a struct field; the default is a struct with its own defaults."""
    return _declare(of, versions, default, nullable, tag, tagged, ignorable, flexible, doc)


def _declare(
    type_: Primitive | Array | type[Any],
    versions: str,
    default: Any,
    nullable: str,
    tag: int | None,
    tagged: str | None,
    ignorable: bool,
    flexible: str | None,
    doc: str,
) -> _Declared:
    if tag is None and tagged is not None:
        raise SchemaError(f"tagged versions {tagged!r} without a tag")
    return _Declared(
        type_,
        {
            "versions": versions,
            "default": default,
            "nullable": nullable,
            "tag": tag,
            "tagged": tagged,
            "ignorable": ignorable,
            "flexible": flexible,
            "doc": doc,
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The declaration of a class."""

    name: str
    kind: Kind
    api_key: int | None
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]

    def is_flexible(self, version: int) -> bool:
        return version in self.flexible


class Message:
    """Base class of every declared class; not used in declarations."""

    __slots__: tuple[str, ...] = ()
    __schema__: Schema

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cls = type(self)
        cls.__init__ = _compile_constructor(cls)  # type: ignore[method-assign]
        cls.__init__(self, *args, **kwargs)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__qualname__}({values})"


def _compile_constructor(cls: type[Message]) -> Callable[..., None]:
    namespace: dict[str, Any] = {"MISSING": MISSING}
    parameters = []
    lines = []
    for field in cls.__schema__.fields:
        if field.has_mutable_default:
            namespace[f"new_{field.name}"] = list if isinstance(field.type, Array) else field.type
            parameters.append(f"{field.name}=MISSING")
            lines.append(f"    self.{field.name} = new_{field.name}() if {field.name} is MISSING else {field.name}")
        else:
            namespace[f"default_{field.name}"] = field.make_default()
            parameters.append(f"{field.name}=default_{field.name}")
            lines.append(f"    self.{field.name} = {field.name}")
    source = f"def __init__({', '.join(['self', *parameters])}):\n" + ("\n".join(lines) or "    pass")
    exec(compile(source, f"<constructor of {cls.__qualname__}>", "exec"), namespace)
    constructor: Callable[..., None] = namespace["__init__"]
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    return constructor


@dataclass_transform()
def message(
    *, kind: Kind, versions: str, flexible: str = "none", api_key: int | None = None
) -> Callable[[type[T]], type[T]]:
    """Declare a message, which is encoded on its own in one of ``versions``."""

    def declare(cls: type[T]) -> type[T]:
        return _build(cls, kind, api_key, parse_versions(versions), parse_versions(flexible))

    return declare


@dataclass_transform()
def struct(cls: type[T]) -> type[T]:
    """Declare a struct, a part of messages; version and encoding are those of the message it is in."""
    return _build(cls, Kind.STRUCT, None, Versions(0, LATEST), NONE)


def _build(cls: type[T], kind: Kind, api_key: int | None, versions: Versions, flexible: Versions) -> type[T]:
    namespace = dict(cls.__dict__)
    namespace.pop("__dict__", None)
    namespace.pop("__weakref__", None)
    fields = []
    for name, annotation in cls.__annotations__.items():
        declared = namespace.pop(name, None)
        if not isinstance(declared, _Declared):
            raise SchemaError(f"{cls.__qualname__}.{name} is annotated but not declared as a field")
        field = declared.named(name)
        _check_field(cls.__qualname__, field, annotation)
        fields.append(field)
    namespace["__slots__"] = tuple(field.name for field in fields)
    namespace["__match_args__"] = namespace["__slots__"]
    namespace["__schema__"] = Schema(
        name=cls.__name__, kind=kind, api_key=api_key, versions=versions, flexible=flexible, fields=tuple(fields)
    )
    built: type[T] = type(cls.__name__, (Message,), namespace)
    return built


def _check_field(owner: str, field: Field, annotation: object) -> None:
    expected = python_type(field)
    if annotation != expected:
        raise SchemaError(f"{owner}.{field.name} is annotated {annotation!r} but declared as {expected!r}")
    if field.default is None and field.nullable.is_empty:
        raise SchemaError(f"{owner}.{field.name} defaults to null but is nullable in no version")


def python_type(field: Field) -> str:
    """The annotation that matches a declaration."""
    repeated = isinstance(field.type, Array)
    element = field.type.element if isinstance(field.type, Array) else field.type
    text = f"list[{_element_name(element)}]" if repeated else _element_name(element)
    return text if field.nullable.is_empty else f"{text} | None"


def _element_name(element: Primitive | type[Any]) -> str:
    return element.python if isinstance(element, Primitive) else element.__name__


def schema_of(cls: type[Any]) -> Schema:
    """Return the declaration of ``cls``; raises SchemaError if it is not a declared class."""
    schema = getattr(cls, "__schema__", None)
    if not isinstance(schema, Schema):
        raise SchemaError(f"{cls!r} is not a declared message or struct")
    return schema
