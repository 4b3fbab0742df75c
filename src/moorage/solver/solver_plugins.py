"""Which strategies may search after counting and the greedy search: CP-SAT, and those of plug-ins.

A plug-in is a package with entry points of the group `moorage.solvers`: the name is the strategy's,
the object makes it when called without arguments. See `solver.strategies` for what becomes of its
answers. Nothing here imports a solver before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, cast

from moorage.domain.errors import BadPlugin
from moorage.domain.words import did_you_mean
from moorage.policies.registry import load_plugin, plugin_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.metadata import EntryPoint

    from moorage.engine.joint.problem import SupportsSolve

GROUP: Final = "moorage.solvers"
"""The group of entry points by which plug-ins offer strategies."""
CPSAT: Final = "cpsat"
"""The strategy of Moorage's own."""


def check_strategies(names: Iterable[str]) -> None:
    """Check that there are strategies of these names, and that they can be made.

    Raises:
        BadPlugin: there are none, one is unknown or cannot be loaded, or two offer one name.
    """
    offered, asked = _offered(), tuple(names)
    if not asked:
        raise BadPlugin("solver_strategies: at least one is needed")
    for name in asked:
        if name != CPSAT:
            _maker(offered, name)


def make_strategy(name: str) -> SupportsSolve:
    """The strategy of that name.

    Raises:
        BadPlugin: see `check_strategies`.
    """
    if name == CPSAT:
        # OR-Tools only where it is used.
        own: SupportsSolve = import_module("moorage.solver.cpsat").CpSat()
        return own
    offered = _offered()
    make = _maker(offered, name)
    try:
        strategy = make()  # type: ignore[operator]  # `_maker` has seen that it can be called
    except Exception as error:
        raise BadPlugin(
            f"{plugin_text('solver', offered[name])} cannot be made: {error!r}"
        ) from error
    if not callable(getattr(strategy, "solve", None)):
        raise BadPlugin(f"{plugin_text('solver', offered[name])} makes nothing with a solve")
    return cast("SupportsSolve", strategy)


def _offered() -> Mapping[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for one in entry_points(group=GROUP):
        if one.name == CPSAT or one.name in found:
            whose = "Moorage itself" if one.name == CPSAT else "another plug-in"
            raise BadPlugin(f"{plugin_text('solver', one)}: {whose} has a strategy of that name")
        found[one.name] = one
    return found


def _maker(offered: Mapping[str, EntryPoint], name: str) -> object:
    if name not in offered:
        known = (CPSAT, *sorted(offered))
        hint = did_you_mean(name, known) or f"; there are: {', '.join(known)}"
        raise BadPlugin(f"solver_strategies: no strategy {name!r} is installed{hint}")
    make = load_plugin("solver", offered[name])
    if not callable(make):
        raise BadPlugin(f"{plugin_text('solver', offered[name])} cannot be called")
    return make
