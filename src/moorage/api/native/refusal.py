"""Errors as responses, with the explanation as the caller may see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from moorage.api.native.errors import told, told_to_tenant
from moorage.api.native.explanations import explanation_view
from moorage.api.native.formats import wall
from moorage.api.native.policies import violations_view
from moorage.domain.errors import Infeasible, MoorageError, SeriesInfeasible
from moorage.domain.explain import Explanation
from moorage.domain.period import format_instant
from moorage.usecases.ensembles.members import JoinBreaksPolicies
from moorage.usecases.refusals.explanation import refused_because
from moorage.usecases.series.requests import OccurrenceRefusal, SeriesAlternative
from moorage.wire.errors import Error, Errors, InsteadOfSeries, RefusedOccurrence

if TYPE_CHECKING:
    from moorage.api.native.call import Call


def refuse(error: MoorageError, request_id: str, call: Call | None) -> Errors:
    """The error document."""
    operator = call is not None and call.caller.operator
    found = (told if operator else told_to_tenant)(error, request_id)
    if call is not None and isinstance(error, Infeasible):
        explanation = error.explanation
        assert isinstance(explanation, Explanation)
        if operator:
            detail = refused_because(explanation, exact=True)
            found = msgspec.structs.replace(found, detail=detail)
        view = explanation_view(call, explanation)
        if not error.stored:
            view = msgspec.structs.replace(view, links=[])
        link = call.link("explanation", "explanations", explanation.id)
        links = [link] if error.stored else found.links
        found = msgspec.structs.replace(found, explanation=view, links=links)
    if call is not None and isinstance(error, SeriesInfeasible):
        found = _of_series(call, found, error)
    if call is not None and isinstance(error, JoinBreaksPolicies):
        violations = violations_view(call, error.violations)
        found = msgspec.structs.replace(found, violations=violations)
    return Errors([found])


def _of_series(call: Call, found: Error, error: SeriesInfeasible) -> Error:
    """A series' error with the occurrences that do not fit, why the first does not, and changes."""
    refused = [one for one in error.refused if isinstance(one, OccurrenceRefusal)]
    first = next((one for one in refused if one.explanation is not None), None)
    explanation = None
    if first is not None and first.explanation is not None:
        explanation = explanation_view(call, first.explanation)
        if not first.stored:
            explanation = msgspec.structs.replace(explanation, links=[])
    return msgspec.structs.replace(
        found,
        explanation=explanation,
        occurrences=[_refused(one) for one in refused],
        instead=[_instead(one) for one in error.instead if isinstance(one, SeriesAlternative)],
    )


def _refused(one: OccurrenceRefusal) -> RefusedOccurrence:
    period = one.slot.period
    return RefusedOccurrence(
        index=one.slot.index,
        start=format_instant(period.start),
        end=format_instant(period.end),
        why=one.why,
        explanation_id=one.explanation.id if one.explanation and one.stored else None,
    )


def _instead(one: SeriesAlternative) -> InsteadOfSeries:
    return InsteadOfSeries(
        fits=one.fits,
        without=list(one.without) or None,
        start=None if one.start is None else wall(one.start),
    )
