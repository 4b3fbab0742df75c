"""A shadow of the reference Placement: both are real processes."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.processes.conftest import Served, StartService, eventually, starter
from tests.servers.reference import Placement, reference


@dataclass
class Shadow:
    """The followed service, and the shadow before it."""

    behind: Placement
    through: Placement
    served: Served
    report_file: Path
    ledger: str
    kill_behind: Callable[[], None]

    def report(self) -> dict[str, Any]:
        """The report as it is now."""
        found: dict[str, Any] = json.loads(self.report_file.read_text())
        return found

    def when(self, condition: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The report, once it fulfils the condition."""

        def fulfilled() -> dict[str, Any] | None:
            found = self.report() if self.report_file.exists() else {}
            return found if found and condition(found) else None

        found: dict[str, Any] = eventually(fulfilled, 60)
        return found

    def after(self, requests: int) -> dict[str, Any]:
        """The report, once so many requests are in it."""
        return self.when(lambda report: report["requests"] >= requests)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartService]:
    with starter(tmp_path) as make:
        yield make


@pytest.fixture
def shadow(tmp_path: Path, start: StartService) -> Iterator[Callable[..., Shadow]]:
    """Start the reference and a shadow of it, with these options."""
    with ExitStack() as stack:

        def make(*options: str, source: bool = True) -> Shadow:
            url = f"sqlite:///{tmp_path}/placement.db"
            running = stack.enter_context(ExitStack())
            behind = running.enter_context(reference(tmp_path / "reference", url))
            ledger = f"sqlite:///{tmp_path}/ledger.db"
            report = tmp_path / "shadow.json"
            followed = ("--shadow", behind.url, "--database", ledger)
            more = ("--shadow-source", url) if source else ()
            served = start(*followed, *more, "--shadow-report", str(report), *options)
            through = Placement(f"http://127.0.0.1:{served.port}/placement")
            made = Shadow(behind, through, served, report, ledger, running.close)
            if source:
                made.when(lambda report: report["refreshes"])
            return made

        yield make
