"""1.25: numbered request groups and `group_policy`; before, there was exactly one group."""

from moorage.api.placement.lowering import without
from moorage.api.placement.schemas import TEXT
from moorage.http.microversion import JSON, Change


def _one_group(schema: JSON) -> JSON:
    """Parameters by pattern become plain ones; `in_tree` came later and is gone by now."""
    plain = without(schema, "patternProperties")
    names = (pattern[1:].partition("(")[0] for pattern in schema["patternProperties"])
    properties = {**without(schema["properties"], "group_policy"), **dict.fromkeys(names, TEXT)}
    return {**plain, "properties": properties, "required": ["resources"]}


CHANGE = Change(since="1.25", feature="numbered-groups", queries={"candidates.list": _one_group})
