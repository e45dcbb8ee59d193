"""Sources and sinks by the JSON and the REST interface of Kafka Connect, on Spark.

What is here does not need Spark, and reads no clock and no network.

- `model`: schemas, structs, logical types, records
- `config`: settings, declared once and checked
- `converters`, `transforms`: Kafka's converters, single message transforms and predicates
- `plugins`: the names of all these classes
"""
