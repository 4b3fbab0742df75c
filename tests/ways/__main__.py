"""Measures how much each main way enters: `python -m tests.ways --help`."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, astuple

from tests.ways import table
from tests.ways.trace import Length
from tests.ways.ways import every_way


def main(words: Sequence[str]) -> int:
    """Measure and print; status 1 if a way is longer than the documentation says."""
    parser = argparse.ArgumentParser(prog="python -m tests.ways", description=__doc__)
    parser.add_argument("--files", action="store_true", help="the files of each way, in order")
    parser.add_argument("--json", action="store_true", help="the numbers as JSON")
    parser.add_argument(
        "--write", action="store_true", help="write what is shorter into the documentation"
    )
    asked = parser.parse_args(words)
    traces = every_way()
    found = {name: trace.length for name, trace in traces.items()}
    if asked.write:
        table.write(found)
    if asked.json:
        _print(json.dumps({name: asdict(one) for name, one in found.items()}))
        return 0
    known, longer = table.read(), False
    _print(" " * 31 + "".join(f"{one:>12}" for one in Length.columns()))
    for name, length in found.items():
        _print(f"{name:31}" + "".join(f"{one:12,}" for one in astuple(length)))
        for one in length.longer(known[name]):
            longer = True
            _print(f"    longer than before: {one}")
        if asked.files:
            for file, functions in traces[name].functions.items():
                _print(f"    {file}: {', '.join(sorted(functions))}")
    return int(longer)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
