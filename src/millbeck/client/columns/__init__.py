"""Records as Arrow columns, without an object per record: `Consumer.poll_columns`, `Producer.send_columns`, Spark.

Needs pyarrow and numpy, the extra ``millbeck[columns]``.
"""
