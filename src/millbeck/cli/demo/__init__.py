"""Parts of ``millbeck demo``: the stream of orders, the reader of results, what is shown, and where the data lies."""
