"""Kafka's command-line tools: their names, flags and output formats over millbeck's own commands.

`tools` declares them, `running` turns a command line into that of a millbeck command, and the modules named after
subjects (`topics`, `groups`, ...) print what scripts parse in the format of Kafka's tool.
"""
