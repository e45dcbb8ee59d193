"""Data pipelines on Spark: ``format("millbeck")`` reads and writes the log from Spark.

    from millbeck.pipeline.session import spark_session
    spark = spark_session("revenue")
    orders = spark.readStream.format("millbeck").option("kafka.bootstrap.servers", "127.0.0.1:9092") \\
        .option("subscribe", "orders").load()

Spark does the work: this package holds no engine, no scheduler and no state store. It reaches the log only through
`millbeck.client`, so everything here works against Apache Kafka as well. Modules that import pyspark or pyarrow say so
in their first line; the others decide things and can be tested without Spark.

- reading: `source` (Spark's side), `source_options`, `offsets`, `planning`, `log_view`, `arrow`
- writing: `sink` (Spark's side), `sink_options`, `outgoing`
- beside a query: `progress_groups` (lag in consumer groups)
- around it: `session`, `java`, `spark_output`, `errors`, `plainly` and `explaining` (errors for people), `formats`
  (Avro, Protobuf and schema registries)
"""
