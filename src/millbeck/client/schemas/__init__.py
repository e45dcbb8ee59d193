"""Schemas for clients: registries and what they keep.

    errors          what can be wrong with a schema, a registry or a record
    protoc          compiles .proto texts (proto_tokens bounds them first, known_protos has what needs no reference)

Nothing here is imported by the rest of the client.
"""
