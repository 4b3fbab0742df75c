"""`moorage replay`: solves a saved problem again in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.files import read_text
from moorage.cli.output import FAILED, OK, Shown
from moorage.cli.parser import Option
from moorage.cli.times import span

if TYPE_CHECKING:
    import argparse

    from moorage.engine.joint.problem import Outcome


class Replay(Command):
    """Solve a saved instance again and compare the answers.

    Give a file, or the id of an explanation whose instance the service stores (operators only).
    A verdict other than the recorded one is reported, with exit status 1.
    """

    examples = """
        moorage replay 4c1f…                    # an explanation's instance
        moorage replay instance.json --seed 3
    """
    options = (
        Option("instance", metavar="INSTANCE", help="a file, - for stdin, or an explanation's id"),
        Option("--seed", type=int, default=0, metavar="N"),
        Option(
            "--time-limit",
            type=span,
            default="5s",
            metavar="5s",
            help="longest time of the search",
        ),
        Option("--save", metavar="FILE", help="save the instance to a file"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        saved = self._saved(args.instance)
        if args.save:
            Path(args.save).write_bytes(saved.kept())
        outcome = solved(saved.instance, args.time_limit, args.seed)
        found = str(outcome.verdict)
        same = saved.verdict is None or found == saved.verdict
        said = f"{found} by {outcome.solver} in {outcome.wall_ms:.0f} ms"
        if found == "feasible":
            said += f", cost {outcome.value} (bound {outcome.bound})"
        if saved.verdict is not None:
            said += ", as recorded" if same else f"; DIFFERS: recorded {saved.verdict}"
        body: dict[str, Any] = {
            "replay": {
                "verdict": found,
                "recorded": saved.verdict,
                "same": same,
                "solver": outcome.solver,
                "value": outcome.value,
                "bound": outcome.bound,
            }
        }
        return Shown(body, said, OK if same else FAILED)

    def _saved(self, text: str) -> Saved:
        if text == "-" or Path(text).is_file() or text.endswith(".json"):
            from moorage.engine.joint.instance import recorded_verdict

            instance = read_text(text)
            return Saved(instance, recorded_verdict(instance))
        with self.client() as client:
            answer = client.explanations.show(text, instance=True).value
        from moorage.cli.output import as_json

        # Of a search that time cut short there is nothing to compare with.
        verdict = None if answer["verdict"] == "undecided" else answer["verdict"]
        return Saved(as_json(answer["instance"]), verdict)


@dataclass(frozen=True, slots=True)
class Saved:
    """An instance as JSON, with its recorded verdict."""

    instance: str
    verdict: str | None

    def kept(self) -> bytes:
        """The instance with its verdict, as saved in a file."""
        from moorage.engine.joint.instance import with_verdict
        from moorage.engine.joint.problem import Verdict

        if self.verdict is None:
            return self.instance.encode()
        return with_verdict(self.instance, Verdict(self.verdict))


def solved(instance: str, time_limit: str, seed: int) -> Outcome:
    """The answer, checked by the policies' own `violations` if the instance has policies."""
    from moorage.domain.period import parse_duration
    from moorage.engine.joint.instance import loads, loads_request
    from moorage.engine.joint.proved_solve import solve
    from moorage.engine.joint.verify import verify
    from moorage.solver.cpsat import CpSat
    from moorage.solver.portfolio import Portfolio

    limit = parse_duration(time_limit)
    solver = Portfolio(exact=CpSat())
    if kind_of(instance) != "request":
        return solver.solve(loads(instance), time_limit=limit, seed=seed)
    built = loads_request(instance)
    outcome = solve(solver, built.problem, time_limit=limit, seed=seed)
    if outcome.hosts is not None:
        verify(built, outcome.hosts)
    return outcome


def kind_of(instance: str) -> object:
    """The kind that an instance states; arbitrary for invalid input, which `loads` refuses."""
    try:
        document = json.loads(instance)
    except ValueError:
        return None
    return document.get("kind") if isinstance(document, dict) else None
