"""Deciding is a pure function: clock, randomness, ids and files are handed in, never fetched.

Imports of whole libraries are the business of `.importlinter`; here are the names inside
harmless modules that reach the outside world.
"""

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

PURE = ("domain", "policies", "engine", "heat")
"""Packages that may call none of the names below."""

TIMELESS = ("usecases",)
"""Packages that decide what is done when: clock and ids come through ports, so tests own them."""

CLOCK = {
    "time.time",
    "time.time_ns",
    "time.monotonic",
    "time.monotonic_ns",
    "time.perf_counter",
    "time.perf_counter_ns",
    "time.localtime",
    "time.gmtime",
    "time.sleep",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
}
IDS = {"uuid.uuid1", "uuid.uuid4", "os.urandom", "os.getpid", "secrets.*"}
RANDOM = {"random.*", "numpy.random.*"}
FILES = {"open", "input", "print", "os.environ", "os.getenv", "importlib.resources.*"}

SEEDED = {
    "random.Random",
    "numpy.random.default_rng",
    "numpy.random.Generator",
    "numpy.random.SeedSequence",
    "numpy.random.PCG64",
}
"""Generators made from a seed that was handed in; `numpy.random.default_rng()` is caught below."""


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Map each local name to the dotted name it was imported from."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                head = alias.name.split(".")[0]
                names[alias.asname or head] = alias.name if alias.asname else head
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted(node: ast.expr, names: dict[str, str]) -> str | None:
    """Spell an expression such as `datetime.now` as `datetime.datetime.now`, if it is a name."""
    match node:
        case ast.Name(id=name):
            return names.get(name, name if name in {"open", "input", "print"} else None)
        case ast.Attribute(value=value, attr=attr):
            before = dotted(value, names)
            return f"{before}.{attr}" if before else None
        case _:
            return None


def forbidden(name: str, rules: set[str]) -> bool:
    if name in SEEDED:
        return False
    return any(
        name.startswith(rule.removesuffix("*")) if rule.endswith("*") else name == rule
        for rule in rules
    )


def offences(source: str, rules: set[str]) -> Iterator[str]:
    """Name each use of a forbidden name, with its line."""
    tree = ast.parse(source)
    names = imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            name = dotted(node, names)
            if name is not None and forbidden(name, rules):
                yield f"line {node.lineno}: {name}"
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            name = dotted(node.func, names)
            if name in SEEDED:
                yield f"line {node.lineno}: {name} without a seed"


EVERYTHING = CLOCK | IDS | RANDOM | FILES


@pytest.mark.parametrize(
    ("name", "rules"),
    [(name, EVERYTHING) for name in PURE] + [(name, CLOCK | IDS | RANDOM) for name in TIMELESS],
)
def test_nothing_is_fetched_that_should_be_handed_in(
    package: Path, name: str, rules: set[str]
) -> None:
    found = [
        f"{path.relative_to(package)}: {offence}"
        for path in sorted((package / name).rglob("*.py"))
        for offence in offences(path.read_text(encoding="utf-8"), rules)
    ]
    assert not found, "\n".join(["make these an argument:", *found])


@pytest.mark.parametrize(
    "source",
    [
        "import time\nnow = time.time()",
        "from time import time as seconds\nnow = seconds()",
        "from datetime import datetime, UTC\nnow = datetime.now(UTC)",
        "import datetime as dt\nnow = dt.datetime.now(dt.UTC)",
        "def f(clock=__import__) -> None:\n    import time\n    clock = time.monotonic",
        "import uuid\nx = uuid.uuid4()",
        "import random\nx = random.choice([1])",
        "from random import shuffle\nshuffle([1])",
        "import numpy as np\nx = np.random.rand()",
        "import numpy as np\nx = np.random.default_rng()",
        "open('x')",
    ],
)
def test_the_rule_sees_every_spelling(source: str) -> None:
    assert list(offences(source, EVERYTHING))


def test_the_rule_leaves_seeds_and_arguments_alone() -> None:
    source = textwrap.dedent(
        """
        import random
        import uuid
        import numpy as np
        from datetime import UTC, datetime

        def f(seed: int, now: datetime, open_at: int) -> None:
            random.Random(seed).choice([1])
            np.random.default_rng(seed).integers(3)
            uuid.uuid5(uuid.NAMESPACE_URL, "x")
            datetime.fromtimestamp(0, UTC)
            now.time()
        """
    )
    assert not list(offences(source, EVERYTHING))
