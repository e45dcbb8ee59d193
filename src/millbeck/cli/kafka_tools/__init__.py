"""Kafka's command-line tools: their names, flags and output formats over millbeck's own commands.

`tools` declares them, `running` turns a command line into that of a millbeck command, and the other modules print the
output that scripts parse, in the format of Kafka's tool.
"""
