"""A file that describes an ensemble: YAML (or JSON) text in, the API's body out.

The body is that of `POST /v1/ensembles`, with or without the outer key `ensemble`. Errors name
the line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.describe import EnsembleDescription, read_ensemble
from moorage.domain.errors import InvalidDescription
from moorage.heat.marked import parse

if TYPE_CHECKING:
    from moorage.heat.marked import Marked

_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def read_description(text: str) -> tuple[dict[str, Any], EnsembleDescription]:
    """Read a description; return the body to send and its checked values.

    Raises:
        InvalidDescription: not YAML, or not the description of an ensemble; with the line.
    """
    top = parse(text)
    if isinstance(top.value, dict) and set(top.value) == {"ensemble"}:
        top = top.value["ensemble"]
    body = top.plain()
    if not isinstance(body, dict):
        raise top.invalid("a description starts with name, members and policies")
    try:
        return body, read_ensemble(body)
    except InvalidDescription as error:
        raise located(error, top) from error


def located(error: InvalidDescription, top: Marked) -> InvalidDescription:
    """The same error, with the line of the place it names, as near as it can be found."""
    if error.line is not None or error.path is None:
        return error
    here = top
    for key, index in _STEP.findall(error.path):
        inside = here.value
        if index and isinstance(inside, list) and int(index) < len(inside):
            here = inside[int(index)]
        elif key and isinstance(inside, dict) and key in inside:
            here = inside[key]
        else:
            break
    return InvalidDescription(error.message, path=error.path, line=here.line)
