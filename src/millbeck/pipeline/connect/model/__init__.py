"""Connect's data: schemas, structs, numbers by width, logical types, texts of values, records."""
