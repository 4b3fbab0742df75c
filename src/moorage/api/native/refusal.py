"""Errors on their way out, with the explanation as the caller may see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from moorage.api.native.answers import Errors
from moorage.api.native.errors import told, told_to_tenant
from moorage.api.native.explaining import explanation_view
from moorage.api.native.views import violations_view
from moorage.domain.errors import Infeasible, MoorageError
from moorage.domain.explain import Explanation
from moorage.usecases.members import Violated

if TYPE_CHECKING:
    from moorage.api.native.call import Call


def refuse(error: MoorageError, request_id: str, call: Call | None) -> Errors:
    """The error document."""
    operator = call is not None and call.caller.operator
    found = (told if operator else told_to_tenant)(error, request_id)
    if call is not None and isinstance(error, Infeasible):
        explanation = error.explanation
        assert isinstance(explanation, Explanation)
        view = explanation_view(call, explanation)
        if not error.stored:
            view = msgspec.structs.replace(view, links=[])
        link = call.link("explanation", "explanations", explanation.id)
        links = [link] if error.stored else found.links
        found = msgspec.structs.replace(found, explanation=view, links=links)
    if call is not None and isinstance(error, Violated):
        violations = violations_view(call, error.violations)
        found = msgspec.structs.replace(found, violations=violations)
    return Errors([found])
