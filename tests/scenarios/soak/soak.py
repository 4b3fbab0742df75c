"""A soak: several services on one database, many clients, kills, and what must hold meanwhile.

    python -m tests.scenarios.soak.soak --database postgresql --seconds 1800 --kills 4

`make soak` runs it for half an hour on each database there is. Prints a report in Markdown, and
writes it where `--report` says; ends with 1 if anything was wrong.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from tests.scenarios.kills import Database, append, database, services, stock
from tests.scenarios.soak.clients import MOVING, STEADY, TOTAL, Client
from tests.scenarios.soak.judging import Watcher, judge
from tests.scenarios.soak.killing import ALL, Killer
from tests.scenarios.soak.report import TITLE, Soaked, as_markdown

from moorage.store import Ledger, open_store


@dataclass(frozen=True)
class Plan:
    """How long, and how much at once."""

    seconds: float = 60.0
    operations: int = 0
    """Requests to be answered before it may end, however long that takes."""
    clients: int = 64
    services: int = 3
    kills_per_minute: float = 0.0
    aims: tuple[str, ...] = ALL
    """What is killed, as often as it is named."""
    each: int = 0
    """Requests of each client to be answered before it may end."""
    planners: int = 1
    """Of each service."""
    seed: int = 20261121


def prepare(store: Ledger) -> None:
    """Hosts and a flavor."""
    stock(store, TOTAL, STEADY + MOVING)


def soak(
    folder: Path,
    *databases: str,
    plan: Plan,
    restart: Callable[[], None] | None = None,
) -> Soaked:
    """Run it and judge it; `restart` crashes the database's server and starts it again.

    Several URLs are of one database, each of another of its nodes.
    """
    store = open_store(databases[0])
    prepare(store)
    stop, killing = Event(), plan.kills_per_minute > 0
    planners = ("--planners", str(plan.planners))
    with services(folder, databases, plan.services, *planners) as served:
        clients = [
            Client(number, served, random.Random(f"{plan.seed}-{number}"), killing)
            for number in range(plan.clients)
        ]
        watcher = Watcher(store, killing=killing)
        dice = random.Random(plan.seed)
        killer = Killer(served, restart, dice, plan.kills_per_minute, plan.aims)
        threads = [Thread(target=client.run, args=(stop,)) for client in clients]
        threads.append(Thread(target=watcher.run, args=(stop,)))
        began = time.monotonic()
        for thread in threads:
            thread.start()
        while not _is_over(plan, clients, time.monotonic() - began):
            killer.wait(0.5)
        stop.set()
        for thread in threads:
            thread.join()
        took = time.monotonic() - began
        for one in served:
            one.up()
        wrong = [one for client in clients for one in client.wrong]
        wrong += watcher.wrong + judge(store, clients)
        wrong += [f"log of a service: {text}" for one in served for text in _told(one.whole_log())]
    store.close()
    return Soaked.of(plan.services, clients, took, wrong, killer.done, watcher.looked)


def _is_over(plan: Plan, clients: list[Client], passed: float) -> bool:
    if any(client.wrong for client in clients):
        return True
    answered = [len(client.waits) for client in clients]
    enough = sum(answered) >= plan.operations and min(answered) >= plan.each
    return enough and passed >= plan.seconds


def _told(log: str) -> list[str]:
    """What no service should ever have to say, with what it said around it."""
    found = (log.find(text) for text in ("Traceback", "database is locked"))
    return [log[max(at - 1_000, 0) : at + 3_000] for at in found if at >= 0]


def main() -> int:
    """From the command line."""
    asked = _arguments()
    plan = Plan(
        seconds=asked.seconds,
        operations=asked.operations,
        clients=asked.clients,
        services=asked.services,
        kills_per_minute=asked.kills,
    )
    with tempfile.TemporaryDirectory(prefix="moorage-soak-") as name:
        given = nullcontext(Database(asked.database))
        own = given if ":" in asked.database else database(asked.database, Path(name))
        with own as (url, restart):
            found = soak(Path(name), url, plan=plan, restart=restart)
    text = as_markdown(found, kind=asked.database.partition(":")[0], command=_repeatable(asked))
    print(text)  # noqa: T201 - a command's result
    if asked.report is not None:
        append(asked.report, TITLE, text)
    return bool(found.wrong)


def _repeatable(asked: argparse.Namespace) -> list[str]:
    """What was asked for, without where the report goes; of a URL only the kind."""
    given = {name: value for name, value in vars(asked).items() if name != "report"}
    given["database"] = asked.database.partition(":")[0]
    return [
        word
        for name, value in given.items()
        for word in (f"--{name}", f"{value:g}" if isinstance(value, float) else str(value))
    ]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.soak.soak")
    say = parser.add_argument
    say(
        "--database",
        default="sqlite",
        help="sqlite, postgresql, mariadb, or the URL of an empty one",
    )
    say("--seconds", type=float, default=60.0, help="at least so long")
    say("--operations", type=int, default=10_000, help="at least so many answers")
    say("--clients", type=int, default=64, help="at once")
    say("--services", type=int, default=3, help="on the one database")
    say("--kills", type=float, default=0.0, help="a minute")
    say("--report", type=Path, help="append the report to this file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
