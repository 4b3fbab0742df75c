"""Ensemble description files: YAML (or JSON) text in, the API's body out.

The body is that of `POST /v1/ensembles`, with or without the outer key `ensemble`. Errors name
the line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.describe import EnsembleDescription, read_ensemble
from moorage.domain.errors import InvalidDescription
from moorage.heat.yaml_tree import parse

if TYPE_CHECKING:
    from moorage.heat.yaml_tree import YamlNode

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


def line_of(text: str, path: str | None) -> int | None:
    """The line of the text at a path such as `policies[0].keep`.

    The nearest line around it where the path leads no further; None without a path.
    """
    if not path:
        return None
    top = parse(text)
    path = path.removeprefix("ensemble.")
    if isinstance(top.value, dict) and set(top.value) == {"ensemble"}:
        top = top.value["ensemble"]
    return _place(top, path).line


def located(error: InvalidDescription, top: YamlNode) -> InvalidDescription:
    """The same error, with the line of the place it names, or the nearest one known."""
    if error.line is not None or error.path is None:
        return error
    line = _place(top, error.path).line
    return InvalidDescription(error.message, path=error.path, line=line)


def _place(top: YamlNode, path: str) -> YamlNode:
    """The node at a path, or the nearest one above it.

    An item of a list is named by its number (`policies[0]`) or by its name (`policies.db-ha`).
    """
    here = top
    for key, index in _STEP.findall(path):
        inside = here.value
        if index and isinstance(inside, list) and int(index) < len(inside):
            here = inside[int(index)]
        elif key and isinstance(inside, dict) and key in inside:
            here = inside[key]
        elif key and isinstance(inside, list):
            named = [one for one in inside if _name(one) == key]
            if not named:
                break
            here = named[0]
        else:
            break
    return here


def _name(item: YamlNode) -> object:
    name = item.value.get("name") if isinstance(item.value, dict) else None
    return None if name is None else name.value
