"""Runs another program, in which ``import aiokafka`` finds millbeck's clients: ``with_compat.py PROGRAM``."""

import runpy
import sys

from millbeck.client.compat import aiokafka

aiokafka.install()
runpy.run_path(sys.argv[1], run_name="__main__")
