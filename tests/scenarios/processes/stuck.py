"""Applications and solvers that stop serving as no real one should, in real processes."""

import ctypes
import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moorage import logs
from moorage.domain import deadline
from moorage.engine.joint.problem import Outcome, Problem
from moorage.http.wsgi import Application, Environ, StartResponse
from moorage.solver.exhaustive import Exhaustive

LONG = 60


def hold_the_interpreter() -> None:
    """A call into C that does not let the interpreter's lock go; a signal does not end it."""
    until = time.monotonic() + LONG
    while (left := until - time.monotonic()) > 0:
        ctypes.PyDLL(None).sleep(int(left) + 1)


def application(config: Mapping[str, Any]) -> Application:
    """Answers with its process's id; does at some paths what no application should."""
    lock = threading.Lock()

    def answer(environ: Environ, start_response: StartResponse) -> list[bytes]:
        match environ["PATH_INFO"]:
            case "/hold":
                hold_the_interpreter()
            case "/lock":
                lock.acquire()
            case "/slow":
                threading.Event().wait(float(config["slow"]))
        start_response("200 OK", [])
        return [str(threading.main_thread().native_id).encode()]

    return answer


def dialects(config: Mapping[str, Any]) -> Mapping[str, Application]:
    """What a planner process answers with: who asks, what it was told, and how long it has left.

    At some paths it does what no application should.
    """
    gate = Path(config["gate"])

    def answer(environ: Environ, start_response: StartResponse) -> list[bytes]:
        match environ["PATH_INFO"]:
            case "/hold":
                hold_the_interpreter()
            case "/limit":
                with deadline.within(time.monotonic, float(environ["limit"])):
                    threading.Event().wait(LONG)
            case "/commit":
                with deadline.within(time.monotonic, 0.1), deadline.over():
                    time.sleep(float(environ["limit"]))
            case "/wait":
                while not gate.exists():
                    time.sleep(0.02)
            case "/fail":
                raise ZeroDivisionError
        texts = {name: value for name, value in environ.items() if isinstance(value, str)}
        told = {
            "project": environ["moorage.caller"].project_id,
            "roles": sorted(environ["moorage.caller"].roles),
            "environ": texts,
            "body": environ["wsgi.input"].read().decode(),
            "left": deadline.left(1_000.0),
            "request": logs.CURRENT.get().own,
        }
        start_response("201 Created", [("x-said", "1"), ("content-length", "0")])
        return [json.dumps(told).encode()]

    return {"native": answer}


class Holding:
    """A solver that holds the interpreter where there are three members."""

    def solve(self, problem: Problem, *, time_limit: int, seed: int) -> Outcome:
        """See `Solver`."""
        if len(problem.members) == 3:
            hold_the_interpreter()
        return Exhaustive().solve(problem, time_limit=time_limit, seed=seed)
