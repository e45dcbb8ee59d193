"""Formats of keys and values that have a schema: Avro and Protobuf, alone or in the wire format of schema registries.

`schemas` (a schema, and the interface of a registry), `wire_format` (magic byte, id and message indexes),
`schema_files` (schemas from files, a directory as a registry, protoc), `avro_records` and `protobuf_records` (bytes to
plain values and back), `avro_types` and `protobuf_types` (need pyspark: the column types of a schema), `columns` (needs
pyarrow: whole batches of them). `millbeck.pipeline.topology.serdes` makes serdes of them.
"""
