"""Files that a .proto may import without a reference: Google's common types and Confluent's own.

protoc contains ``google/protobuf``. ``google/type`` is read from the package googleapis-common-protos, if that is
installed. Confluent's are few and small, and their names and numbers are what its clients expect.
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Final

PROTOBUF_FOLDER: Final = "google/protobuf/"
"""The import prefix of files that come with protoc."""
_TYPES_FOLDER: Final = "google/type/"
_META: Final = """syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
option go_package = "../confluent";
message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
  repeated Rule rules = 4;
}
message Rule {
  string name = 1;
  string doc = 2;
  string expr = 3;
  string sql = 4;
}
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
"""
_DECIMAL: Final = """syntax = "proto3";
package confluent.type;
option go_package = "../types";
message Decimal {
  bytes value = 1;
  uint32 precision = 2;
  int32 scale = 3;
}
"""
_VARIANT: Final = """syntax = "proto3";
package confluent.type;
option go_package = "../types";
message Variant {
  bytes metadata = 1;
  bytes value = 2;
}
"""
_CONFLUENT: Final = {
    "confluent/meta.proto": _META,
    "confluent/type/decimal.proto": _DECIMAL,
    "confluent/type/variant.proto": _VARIANT,
    "confluent/types/decimal.proto": 'syntax = "proto3";\nimport public "confluent/type/decimal.proto";\n',
}


@lru_cache(maxsize=64)
def known_proto(name: str) -> str | None:
    """The text of a known file; None for other names, and for files that protoc contains."""
    if name in _CONFLUENT:
        return _CONFLUENT[name]
    if not name.startswith(_TYPES_FOLDER) or "/" in name.removeprefix(_TYPES_FOLDER):
        return None
    try:
        found = importlib.util.find_spec("google.type")
    except ModuleNotFoundError:
        return None
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        path = Path(folder) / name.removeprefix(_TYPES_FOLDER)
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return None
