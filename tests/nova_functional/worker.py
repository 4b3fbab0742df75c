"""Runs one module of Nova's functional tests, with Moorage or the reference as its Placement.

    python -m tests.nova_functional.worker moorage|reference MODULE

Runs in the environment of `make nova-functional`, and writes a line of JSON per test to stdout: its
id, its outcome, and the end of its traceback. Nova's fixture starts openstack-placement in the
process of the test; for Moorage it gets Moorage's application, with a new ledger in memory.
"""

from __future__ import annotations

import json
import sys
import unittest
import warnings
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Environ = dict[str, Any]
    Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

LAST: Final = 600
"""Characters of a traceback that are kept."""


def main() -> None:
    """Run the module or test named on the command line."""
    side, name = sys.argv[1:]
    out, sys.stdout = sys.stdout, sys.stderr
    # Before all else of Nova: it patches the standard library.
    import nova.tests.functional  # type: ignore[import-not-found]
    from nova.tests import fixtures

    assert nova.tests.functional
    fixtures.WarningsFixture.setUp = _tolerant(fixtures.WarningsFixture.setUp)
    if side == "moorage":
        from placement import deploy

        deploy.loadapp = _loader()
    unittest.defaultTestLoader.loadTestsFromName(name).run(Outcomes(out))


class Outcomes(unittest.TestResult):
    """Writes the outcome of each test; the arguments are testtools'."""

    def __init__(self, out: TextIO) -> None:
        super().__init__()
        self._out = out

    def addSuccess(self, test: Any, details: Any = None) -> None:  # noqa: N802
        del details
        self._say(test, "passed")

    def addSkip(self, test: Any, reason: Any = None, details: Any = None) -> None:  # noqa: N802
        self._say(test, "skipped", reason or details)

    def addError(self, test: Any, err: Any = None, details: Any = None) -> None:  # noqa: N802
        self._say(test, "failed", details or err)

    addFailure = addError  # noqa: N815
    addUnexpectedSuccess = addError  # noqa: N815

    def addExpectedFailure(self, test: Any, err: Any = None, details: Any = None) -> None:  # noqa: N802
        del err, details
        self._say(test, "passed")

    def _say(self, test: unittest.TestCase, outcome: str, details: Any = None) -> None:
        if isinstance(details, dict):
            texts = (one.as_text() for name, one in details.items() if "traceback" in name)
            why = "".join(texts)[-LAST:]
        else:
            why = str(details or "")[-LAST:]
        line = json.dumps({"id": test.id(), "outcome": outcome, "why": why})
        print(line, file=self._out, flush=True)


def _tolerant(strict: Callable[[Any], None]) -> Callable[[Any], None]:
    """Nova's warnings are errors, but not that its `noload` is deprecated by a newer SQLAlchemy."""

    def set_up(fixture: Any) -> None:
        strict(fixture)
        warnings.filterwarnings("ignore", message=r"The noload\(\) option")

    return set_up


def _loader() -> Callable[[object], Application]:
    """The function that makes Moorage's application, in place of the reference's.

    All is imported now: Nova's fixtures forbid to ask for the machine's name, as numpy does once.
    """
    from moorage.app import create_app
    from moorage.settings import configure, read
    from moorage.store import open_store

    database = "sqlite://"
    settings = configure(read({"database": database, "auth": "noauth2"}, {}, ()))
    create_app(settings, store=open_store(database))
    last: list[tuple[object, Application]] = []

    def load(configuration: object) -> Application:
        # One of the tests stops Placement and starts it again with the same database.
        if not last or last[0][0] is not configuration:
            last[:] = [(configuration, create_app(settings, store=open_store(database)))]
        ((_, application),) = last

        def mounted(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
            path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
            return application({**environ, "SCRIPT_NAME": "", "PATH_INFO": path}, start_response)

        return mounted

    return load


if __name__ == "__main__":
    main()
