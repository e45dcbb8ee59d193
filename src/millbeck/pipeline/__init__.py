"""Data pipelines on Spark: ``format("millbeck")`` reads and writes the log from Spark.

    from millbeck.pipeline.session import spark_session
    spark = spark_session("revenue")
    orders = spark.readStream.format("millbeck").option("kafka.bootstrap.servers", "127.0.0.1:9092") \\
        .option("subscribe", "orders").load()

Spark does the processing: this package adds no engine, scheduler or state store. It reaches the cluster only through
`millbeck.client`, so everything here works with Apache Kafka as well. The first line of a module states whether it
imports pyspark or pyarrow; the others are pure logic and can be tested without Spark.

- reading: `source` (Spark's side), `source_options`, `offsets`, `planning`, `log_view`, `arrow`,
  `table_copy` and `table_rows` (copies of global tables)
- writing: `sink` (Spark's side), `sink_options`, `row_writer`
- monitoring: `progress_groups` (commits a query's offsets to a consumer group, so that its lag is visible)
- environment and errors: `session`, `java`, `spark_output`, `errors`, `short_errors` and `error_summaries`, `formats`
  (Avro, Protobuf and schema registries)
"""
