"""`python -m tests.fuzz.parsers [TARGET ...] --seconds 60`: each parser in a process of its own, for that long.

A find is an exception that the parser does not declare, an input that takes longer than a second or more than 512 MiB.
The input is kept in build/fuzz, and tried again by naming the file: `python -m tests.fuzz.parsers jks --input FILE`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

KEPT = Path("build/fuzz")
INPUT_BYTES_MAX = 8192


def fuzz(name: str, seconds: int) -> int:
    """Fuzz one parser; its code is instrumented, so it must not have been imported before."""
    import atheris

    with atheris.instrument_imports(include=["millbeck.security", "millbeck.kernel.java_names"]):
        from tests.fuzz.parsers.targets import TARGETS
    corpus = KEPT / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(TARGETS[name].seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={INPUT_BYTES_MAX}",
        "-timeout=1",
        "-rss_limit_mb=512",
        f"-artifact_prefix={KEPT}/{name}-",
        "-print_final_stats=1",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], TARGETS[name])
    atheris.Fuzz()
    return 0


def try_again(name: str, path: Path) -> int:
    from tests.fuzz.parsers.targets import TARGETS

    TARGETS[name](path.read_bytes())
    print(f"{name}: nothing found")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.parsers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=int, default=60, help="for each parser")
    parser.add_argument("--input", type=Path, help="try one input again")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.input is not None:
        return try_again(chosen.names[0], chosen.input)
    if chosen.here:
        return fuzz(chosen.names[0], chosen.seconds)
    from tests.fuzz.parsers.targets import TARGETS

    failed = []
    for name in chosen.names or TARGETS:
        command = [sys.executable, "-m", "tests.fuzz.parsers", name, "--here", "--seconds", str(chosen.seconds)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=chosen.seconds + 120)
        said = done.stderr + done.stdout
        runs = next((line.split()[-1] for line in said.splitlines() if "number_of_executed_units" in line), "?")
        print(f"{name}: {runs} inputs, {'nothing found' if not done.returncode else 'FOUND'}", flush=True)
        if done.returncode:
            failed.append(name)
            print(said[-4000:], flush=True)
    print(f"{len(failed)} of {len(chosen.names or TARGETS)} parsers failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
