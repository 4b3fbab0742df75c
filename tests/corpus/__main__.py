"""Plays stories and compares, or records anew: `python -m tests.corpus --help`."""

import argparse
import sys
from collections.abc import Sequence
from fnmatch import fnmatch

from tests.corpus.comparison import RECORDED, differences, file_of, recorded, write
from tests.corpus.play import play
from tests.corpus.story import BadStory, names, read

_SHOWN = 5
"""Differences of one story that are printed."""


def main(words: Sequence[str]) -> int:
    """Do what is asked; status 1 if an answer differs from the recorded one."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("story", nargs="*", help="such as native/leases or 'placement/*'; or all")
    parser.add_argument("--write", action="store_true", help="record the answers")
    parser.add_argument("--list", action="store_true", help="print each exchange's status")
    parser.add_argument(
        "--first-id", type=int, default=1, help="from where on the service's ids are counted"
    )
    asked = parser.parse_args(words)
    differ = 0
    chosen = [
        one for one in names() if not asked.story or any(fnmatch(one, s) for s in asked.story)
    ]
    for name in chosen:
        try:
            found = play(read(name), asked.first_id)
        except BadStory as error:
            differ += 1
            _print(str(error))
            continue
        if asked.list:
            for one in found:
                _print(f"{one['status']} {one['ask']}{_codes(one)}")
        if asked.write:
            changed = write(name, found)
            _print(f"{name}: {len(found)} exchanges{', changed' if changed else ''}")
            continue
        told = list(differences(recorded(name), found))
        differ += bool(told)
        _print(f"{name}: {len(told)} of {len(found)} exchanges differ")
        for text in told[:_SHOWN]:
            _print(text)
    if asked.write and not asked.story:
        _forget({file_of(name) for name in chosen})
    return bool(differ)


def _codes(exchange: dict[str, object]) -> str:
    body = exchange.get("body")
    errors = body.get("errors", []) if isinstance(body, dict) else []
    said = [f" {one.get('code')} {str(one.get('detail'))[:150]}" for one in errors]
    return "".join(said)


def _forget(kept: set[object]) -> None:
    """Delete the records of stories that are gone."""
    for path in RECORDED.glob("*/*.json"):
        if path not in kept:
            path.unlink()
            _print(f"deleted {path.name}")


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
