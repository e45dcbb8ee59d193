"""Runs every mutant, and reports which checkers detect it: ``make mutants``."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Sequence

from millbeck import compiled
from millbeck.simulation.mutants.catalogue import MUTANTS
from millbeck.simulation.mutants.judging import judge_named, table
from millbeck.simulation.runs.progress import print_line


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="millbeck.simulation.mutants", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="run only mutants whose names contain this text")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args(arguments)
    if compiled.in_use():
        print_line("mutants need the Python files: MILLBECK_PURE=1")
        return 2
    names = [mutant.name for mutant in MUTANTS if chosen.only in mutant.name]
    verdicts = []
    with multiprocessing.get_context("spawn").Pool(chosen.jobs, maxtasksperchild=1) as pool:
        for verdict in pool.imap_unordered(judge_named, names, chunksize=1):
            verdicts.append(verdict)
            print_line(f"{verdict.name}: seed {verdict.seed}, {verdict.seconds:.0f} s, {verdict.first[:160]}")
    print_line(table(sorted(verdicts, key=lambda verdict: names.index(verdict.name))))
    return 1 if any(verdict.seed < 0 for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
