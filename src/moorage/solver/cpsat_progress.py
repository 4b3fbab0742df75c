"""Reports the progress of a CP-SAT solve: each better placement, and each better bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from moorage.domain.search_progress import SearchProgress
from moorage.solver.cpsat_alone import cp_model

if TYPE_CHECKING:
    from moorage.domain.search_progress import Listener
    from moorage.solver.cpsat_model import Model


def cost_bound(stated: Model, objective_bound: float) -> int:
    """The bound of the cost for a bound of the model's objective."""
    least = objective_bound if stated.costs else 0.0
    return int(np.ceil(least - 1e-6)) + stated.constant


class ProgressCallback(cp_model.CpSolverSolutionCallback):
    """Tells a listener of solutions and bounds. CP-SAT calls it from threads of its own."""

    def __init__(
        self, stated: Model, hears: Listener, solver: str, value: int | None, bound: int
    ) -> None:
        """`value` (None: none) and `bound` are known before the solve."""
        super().__init__()
        self._stated = stated
        self._hears = hears
        self._solver = solver
        self._value = value
        self._bound = bound

    def on_solution_callback(self) -> None:
        """Report the cost of a placement that was found."""
        objective = round(self.objective_value) if self._stated.costs else 0
        self._value = objective + self._stated.constant
        self._report()

    def bound_proved(self, objective_bound: float) -> None:
        """Report a bound. Not for a model that leaves out hosts: it proves nothing there."""
        self._bound = max(self._bound, cost_bound(self._stated, objective_bound))
        self._report()

    def _report(self) -> None:
        self._hears(SearchProgress(self._solver, self._value, self._bound))
