"""Makes once a process what every ledger and every application in it would make alike.

In production a process has one of each. Most tests have one of their own, and half of their time
went into wording the same statements and looking at the same routes again.
"""

import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any

from falcon.routing import compiled
from sqlalchemy import Dialect

from moorage.store import postgres, sqlite
from moorage.store.statements import Speech

_spoken: dict[str, Speech] = {}


def pytest_configure() -> None:
    """Stand between those who make it and those who ask for it."""
    vars(sqlite)["Speech"] = vars(postgres)["Speech"] = _speech
    vars(compiled)["iscoroutinefunction"] = _is_coroutine_function


def _speech(dialect: Dialect) -> Speech:
    """How the one library, or the one driver, words statements: the same for every ledger."""
    return _spoken.setdefault(dialect.name, Speech(dialect))


def _is_coroutine_function(function: Callable[..., Any]) -> bool:
    """As `inspect` says, by the shortest way: falcon asks of every verb of every route."""
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType):
        return bool(code.co_flags & inspect.CO_COROUTINE)
    return inspect.iscoroutinefunction(function)
