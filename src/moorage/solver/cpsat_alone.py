"""Imports CP-SAT's interface without pandas, which it needs only for unused series of variables.

pandas would be nearly half of a solver process's start and of its memory. While OR-Tools is
imported, empty classes stand where pandas would be: all that is asked of them then is their names.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["cp_model"]

_NAMES: Final = ("DataFrame", "Index", "Series")


def _imported() -> ModuleType:
    """OR-Tools' module; with the real pandas if that is imported already or needed after all."""
    if "pandas" not in sys.modules:
        with suppress(AttributeError), _stood_in_for():  # raised by another version of OR-Tools
            return importlib.import_module("ortools.sat.python.cp_model")
    return importlib.import_module("ortools.sat.python.cp_model")


@contextmanager
def _stood_in_for() -> Iterator[None]:
    """Put an empty module in place of pandas, with only the names of some classes."""
    found = ModuleType("pandas")
    for name in _NAMES:
        setattr(found, name, type(name, (), {}))
    sys.modules["pandas"] = found
    try:
        yield
    finally:
        del sys.modules["pandas"]


if TYPE_CHECKING:
    from ortools.sat.python import cp_model
else:
    cp_model = _imported()
