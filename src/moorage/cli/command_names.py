"""The words of commands in the `openstack` client, whose plug-in has the commands of `moorage`.

Nouns that are the client's own, or could be another plug-in's, stand below `ensemble`.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from moorage.cli.commands import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator

MOORAGE: Final = "moorage"
OPENSTACK: Final = "openstack"
BELOW_ENSEMBLE: Final = frozenset(
    """
    event explanation flavor fleet host hot mix policy provider quota server share subscription
    survivability template topology violation whatif
    """.split()  # noqa: SIM905 - words read better than quotes
)
LOCAL: Final = frozenset("admin complete config demo replay serve sim token".split())  # noqa: SIM905
"""Nouns about the machine, not about a service that one is logged in to: of `moorage` alone."""


def in_openstack(name: str) -> str | None:
    """The words of a command in the `openstack` client; None: it is not there."""
    noun = name.split(maxsplit=1)[0]
    if noun in LOCAL:
        return None
    return f"ensemble {name}" if noun in BELOW_ENSEMBLE else name


def entry_points() -> dict[str, str]:
    """The entry points of the plug-in's commands, as `pyproject.toml` has them."""
    return {
        words.replace(" ", "_"): f"moorage.cli.{COMMANDS[name]}"
        for name in COMMANDS
        if (words := in_openstack(name)) is not None
    }


def name_of(command: type) -> str:
    """The name of a command in the table, by its class; "" if it is not there."""
    value = f"{command.__module__.rpartition('.')[2]}:{command.__name__}"
    return next((name for name, one in COMMANDS.items() if one == value), "")


_RUNNING: ContextVar[str] = ContextVar("program", default=MOORAGE)


@contextmanager
def running(program: str) -> Iterator[None]:
    """The commands that texts name are those of this program meanwhile; see `as_typed`."""
    token = _RUNNING.set(program)
    try:
        yield
    finally:
        _RUNNING.reset(token)


def as_typed(text: str) -> str:
    """A text, with `moorage lease show` as it is typed in the running program."""
    if _RUNNING.get() == MOORAGE or MOORAGE not in text:
        return text
    names = sorted((one for one in COMMANDS if in_openstack(one)), key=len, reverse=True)
    named = re.compile(rf"\b{MOORAGE} ({'|'.join(names)})\b")
    return named.sub(lambda found: f"{OPENSTACK} {in_openstack(found[1])}", text)
