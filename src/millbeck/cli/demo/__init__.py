"""Parts of ``millbeck demo``: the stream of orders, the reader of results, the display, and the directories."""
