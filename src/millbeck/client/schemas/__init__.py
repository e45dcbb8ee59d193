"""Schemas for clients: a registry's client, and serializers of Avro, Protobuf and JSON Schema (``millbeck[schemas]``).

    from millbeck.client.schemas.avro import AvroSerde

    orders = AvroSerde({"schema.registry.url": "http://127.0.0.1:8081"}, schema=Path("order.avsc").read_text())
    async with Producer({"bootstrap.servers": "127.0.0.1:9092"}, value_serializer=orders) as producer:
        await producer.send("orders", {"id": "a"})

    model           a schema, and the interface of a registry
    errors          the errors of schemas, registries and records
    registry_client a registry over HTTP (transport), which is asked for each schema once (caches)
    avro, protobuf, json_schema
                    serializers of each format; serde has what they share, naming the subjects, settings the settings
    wire_format     ids, guids and message indexes in records and headers
    protoc          compiles .proto texts (proto_tokens bounds them first, known_protos has what needs no reference)
    descriptors     the descriptors of a Protobuf schema, from either of its forms

The rest of the client imports nothing of this.
"""
