"""Sources and sinks by the JSON and the REST interface of Kafka Connect, on Spark.

Needs Spark only in `worker.spark_engine`; `model` to `state` use neither clock nor network.

- `model`: schemas, structs, logical types, records
- `config`: settings, declared once and checked
- `converters`, `transforms`: Kafka's converters, single message transforms and predicates
- `connectors`: what a connector is, and those that are built in
- `plugins`: the names of all these classes
- `state`: the records of the three state topics, and what they add up to
- `tasks`: what Spark's tasks do with a share
- `worker`: runs connectors in turns, alone or with others
- `rest`: what requests mean, and the ASGI application (`app` needs starlette)
- `connector_files`, `rehearsal`, `dead_letters`: what the commands use
"""
