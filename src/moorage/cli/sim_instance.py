"""`moorage replay`: solves a saved problem again in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moorage.cli import decision
from moorage.cli.command import Command
from moorage.cli.files import read_text
from moorage.cli.output import FAILED, OK, Shown
from moorage.cli.parser import Option, WrongUsage
from moorage.cli.times import span
from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from moorage.engine.joint.problem import Outcome
    from moorage.wire.decision_records import DecisionRecord


class Replay(Command):
    """Solve a saved instance again and compare the answers.

    Give a file, or the id of an explanation or decision whose instance the service stores
    (operators only). Of a decision's record it says whether the same places come out. A verdict or
    a cost other than the recorded one is reported, with exit status 1.
    """

    examples = """
        moorage replay 4c1f…                    # an explanation's instance
        moorage replay 6f0c                     # a decision's record
        moorage replay instance.json --seed 3
    """
    options = (
        Option(
            "instance",
            metavar="INSTANCE",
            help="a file, - for stdin, or an explanation's id, or a decision as others name it",
        ),
        Option("--seed", type=int, metavar="N", help="default: that of the record, or 0"),
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
        recorded = saved.record
        seed = args.seed if args.seed is not None else recorded.solve.seed if recorded else 0
        told = None if recorded is None else recorded.scatter
        scatter = told if isinstance(told, int) else None
        outcome, places = solved(saved.instance, args.time_limit, seed, scatter)
        found = str(outcome.verdict)
        same = saved.verdict is None or found == saved.verdict
        said = f"{found} by {outcome.solver} in {outcome.wall_ms:.0f} ms"
        if found == "feasible":
            said += f", cost {outcome.value} (bound {outcome.bound})"
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
        if recorded is not None and same:
            compared = _compared(recorded, places, outcome)
            body["replay"] |= {"same": compared.same, "same_places": compared.same_places}
            return Shown(body, f"{said}; {compared.said}", OK if compared.same else FAILED)
        if saved.verdict is not None:
            said += ", as recorded" if same else f"; DIFFERS: recorded {saved.verdict}"
        return Shown(body, said, OK if same else FAILED)

    def _saved(self, text: str) -> Saved:
        from moorage.cli.output import as_json
        from moorage.client.errors import Missing, NotFound, UnknownAnswer

        if text == "-" or Path(text).is_file() or text.endswith(".json"):
            from moorage.engine.joint.instance import recorded_verdict

            instance = read_text(text)
            record = _record_in(instance)
            try:
                if record is None:
                    return Saved(instance, recorded_verdict(instance))
                saved = Saved.of(record, instance)
                recorded_verdict(saved.instance)
            except (InvalidDescription, UnknownAnswer) as error:
                raise WrongUsage(
                    f"{text} has neither an instance nor a decision's record: {error.message}; such"
                    " a file is written by moorage replay ID --save FILE"
                ) from None
            return saved
        with self.client() as client:
            try:
                answer = client.explanations.show(text, instance=True).value
            except (Missing, NotFound):
                id_ = str(decision.find(client, text).value.id)
                told = client.decisions.record(id_, instance=True).body
                return Saved.of(told, as_json(told))

        # Of a search that time cut short there is nothing to compare with.
        verdict = None if answer["verdict"] == "undecided" else answer["verdict"]
        return Saved(as_json(answer["instance"]), verdict)


@dataclass(frozen=True, slots=True)
class Saved:
    """An instance as JSON, with its recorded verdict, or with the record of a decision."""

    instance: str
    verdict: str | None
    record: DecisionRecord | None = None
    file: str = ""
    """The record as it was read."""

    @classmethod
    def of(cls, body: Mapping[str, Any], file: str) -> Saved:
        """That of a decision's record, as the service answers it."""
        from moorage.cli.output import as_json
        from moorage.client.resource import converted
        from moorage.wire.decision_records import DecisionRecord

        told = dict(body["record"])
        instance = as_json(told.pop("instance"))
        return cls(instance, "feasible", converted(told, DecisionRecord), file)

    def kept(self) -> bytes:
        """The instance with its verdict, or the record, as saved in a file."""
        from moorage.engine.joint.instance import with_verdict
        from moorage.engine.joint.problem import Verdict

        if self.record is not None:
            return self.file.encode()
        if self.verdict is None:
            return self.instance.encode()
        return with_verdict(self.instance, Verdict(self.verdict))


def _record_in(text: str) -> dict[str, Any] | None:
    """The record of a decision that a file has; None: it is an instance, or nothing known."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    record = found.get("record") if isinstance(found, dict) else None
    return found if isinstance(record, dict) and "instance" in record else None


@dataclass(frozen=True, slots=True)
class _Compared:
    """How a replay compares with a decision's record."""

    same: bool
    same_places: bool
    said: str


def _compared(recorded: DecisionRecord, places: str | None, outcome: Outcome) -> _Compared:
    """Compare places and cost. Kept places were not searched for: others may be cheaper."""
    then = recorded.solve
    if places == recorded.places:
        return _Compared(same=True, same_places=True, said="the same places, as recorded")
    if outcome.value == then.value:
        said = "other places at the recorded cost"
        return _Compared(same=True, same_places=False, said=said)
    if then.ended == "kept" or (not then.optimal and outcome.value < then.value):
        said = f"other places; recorded were places of cost {then.value}, {then.ended}"
        return _Compared(same=True, same_places=False, said=said)
    said = f"DIFFERS: other places, recorded cost {then.value}"
    return _Compared(same=False, same_places=False, said=said)


def solved(
    instance: str, time_limit: str, seed: int, scatter: int | None = None
) -> tuple[Outcome, str | None]:
    """The answer, checked by the policies' own `violations` if the instance has policies.

    Then also the digest of its places. For `scatter` see `Greedy`.
    """
    from moorage.domain.decision_records import places_digest
    from moorage.domain.period import parse_duration
    from moorage.engine.joint.alternatives import constant_cost
    from moorage.engine.joint.instance import loads, loads_request
    from moorage.engine.joint.proved_solve import solve
    from moorage.engine.joint.verify import placed_members, verify
    from moorage.solver.cpsat import CpSat
    from moorage.solver.greedy import Greedy
    from moorage.solver.portfolio import Portfolio

    limit = parse_duration(time_limit)
    solver = Portfolio(exact=CpSat(), greedy=Greedy(scatter=scatter))
    if kind_of(instance) != "request":
        return solver.solve(loads(instance), time_limit=limit, seed=seed), None
    built = loads_request(instance)
    outcome = solve(solver, built.problem, time_limit=limit, seed=seed)
    hosts = outcome.hosts
    if hosts is None:
        return outcome, None
    verify(built, hosts)
    constant = constant_cost(built.problem)
    outcome = replace(outcome, value=outcome.value - constant, bound=outcome.bound - constant)
    placed = placed_members(built, hosts)
    return outcome, places_digest({name: built.problem.hosts[row] for name, _, row in placed})


def kind_of(instance: str) -> object:
    """The kind that an instance states; arbitrary for invalid input, which `loads` refuses."""
    try:
        document = json.loads(instance)
    except ValueError:
        return None
    return document.get("kind") if isinstance(document, dict) else None
