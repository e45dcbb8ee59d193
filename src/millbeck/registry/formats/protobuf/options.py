"""Options in the syntax of a .proto: ``deprecated = true``, ``(confluent.field_meta) = { doc: "x" }``.

An extension is known only to the pool of the files that define it, so options are read again with a class of that pool.
Features are written one by one, since a .proto cannot set them all at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.text_encoding import CEscape

_FEATURES: Final = "features"
_INTERNAL: Final = ("map_entry", "uninterpreted_option")


class OptionPrinter:
    def __init__(self, pool: DescriptorPool) -> None:
        self._pool = pool

    def assignments(self, options: Message, *, is_sorted: bool) -> list[str]:
        """Each option as ``name = value``."""
        found = [f"{name} = {value}" for name, value in self._each(self._with_extensions(options), "")]
        return sorted(found) if is_sorted else found

    def _with_extensions(self, options: Message) -> Message:
        try:
            known = GetMessageClass(self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name))
        except KeyError:
            return options
        made: Message = known.FromString(options.SerializeToString())
        return made

    def _each(self, options: Message, prefix: str) -> Iterator[tuple[str, str]]:
        for field, value in options.ListFields():
            if field.name in _INTERNAL:
                continue
            name = f"{prefix}({field.full_name})" if field.is_extension else f"{prefix}{field.name}"
            if field.message_type is not None and (field.name == _FEATURES or prefix) and not field.is_repeated:
                yield from self._each(value, f"{name}.")
            else:
                for each in value if field.is_repeated else [value]:
                    yield name, self._value(field, each)

    def _value(self, field: FieldDescriptor, value: Any) -> str:
        if field.message_type is not None:
            inner = text_format.MessageToString(value, as_one_line=True, descriptor_pool=self._pool)
            return f"{{ {inner} }}" if inner else "{}"
        return scalar_text(field, value)


def scalar_text(field: FieldDescriptor, value: Any) -> str:
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return str(value) if named is None else named.name
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | bytes):
        return quoted(value)
    return repr(value).replace("1e+", "1e") if isinstance(value, float) else str(value)


def quoted(value: str | bytes) -> str:
    return f'"{CEscape(value, as_utf8=isinstance(value, str))}"'
