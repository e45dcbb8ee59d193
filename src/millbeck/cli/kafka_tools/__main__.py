"""``python -m millbeck.cli.kafka_tools kafka-topics --list …``: the entry point of the installed executables."""

import sys

from millbeck.cli.kafka_tools.running import main

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
