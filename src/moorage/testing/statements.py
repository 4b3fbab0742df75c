"""What this process says to SQLite in transactions, for whoever counts it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from moorage.store.database.session import CursorSession
from moorage.store.database.statements import StatementCompiler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.store.database.statements import CompiledStatement, Parameters


@contextmanager
def said() -> Iterator[list[str]]:
    """The text of each statement, each BEGIN and COMMIT; one with many sets of values comes once.

    Not the look at the newest revision, which is none, nor what goes through SQLAlchemy. It may be
    cleared meanwhile.
    """
    found: list[str] = []
    worded, tell = StatementCompiler.compiled, CursorSession.execute_text

    def noted(speech: StatementCompiler, construct: Any, given: Parameters) -> CompiledStatement:  # noqa: ANN401 - as that
        here = worded(speech, construct, given)
        found.append(here.text)
        return here

    def told(session: CursorSession, text: str, *arguments: Any) -> Any:  # noqa: ANN401 - as that
        found.append(text)
        return tell(session, text, *arguments)

    with (
        patch.object(StatementCompiler, "compiled", noted),
        patch.object(CursorSession, "execute_text", told),
    ):
        yield found
