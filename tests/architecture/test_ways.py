"""No main way becomes longer than the documentation says: `make ways` shows what each enters."""

import json
import subprocess
import sys
from pathlib import Path

from tests.ways import table
from tests.ways.trace import Length, traced

ROOT = Path(__file__).parents[2]


def test_no_way_is_longer_than_the_page_says() -> None:
    # In a process of its own: what other tests left in caches would change what is entered.
    done = subprocess.run(
        [sys.executable, "-m", "tests.ways", "--json"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    found = {name: Length(**numbers) for name, numbers in json.loads(done.stdout).items()}
    known = table.read()
    assert found.keys() == known.keys()
    longer = [f"{name}: {one}" for name in found for one in found[name].longer(known[name])]
    assert not longer, "shorten the way, or say in the commit why it must be longer:\n" + "\n".join(
        longer
    )


def test_a_way_is_what_is_entered_of_the_program() -> None:
    from moorage.domain.period import HOUR, Period

    trace = traced(lambda: [Period(0, HOUR).open_ended, json.dumps({})])
    period = {"Period.__post_init__", "Period.open_ended"}
    assert trace.functions == {"domain/period.py": period}
    assert trace.length == Length(files=1, functions=2, calls=2, switches=1, value_types=1)


def test_numbers_are_written_only_if_they_are_smaller() -> None:
    one, other = Length(3, 9, 20, 8, 2), Length(4, 7, 20, 8, 2)
    assert one.shortest(other) == Length(3, 7, 20, 8, 2)
    assert one.longer(other) == ["functions: 9, not 7"]
