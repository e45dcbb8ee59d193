"""Sources and sinks by the JSON and the REST interface of Kafka Connect, on Spark.

These modules need no Spark, and use neither clock nor network.

- `model`: schemas, structs, logical types, records
- `config`: settings, declared once and checked
- `converters`, `transforms`: Kafka's converters, single message transforms and predicates
- `connectors`: what connectors are called, and their settings
- `plugins`: the names of all these classes
- `state`: the records of the three state topics, and what they add up to
- `rest`: what requests mean, and the ASGI application (`app` needs starlette)
- `connector_files`, `rehearsal`, `dead_letters`: what the commands use
"""
