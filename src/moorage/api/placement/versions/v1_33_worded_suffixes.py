"""1.33: the suffix of a request group may be a word; before, it was a number."""

from moorage.api.placement.schemas import NUMBERED_SUFFIX, SUFFIX
from moorage.http.microversion import JSON, Change


def _numbered(schema: JSON) -> JSON:
    patterns = {
        pattern.replace(SUFFIX, NUMBERED_SUFFIX): value
        for pattern, value in schema["patternProperties"].items()
    }
    return {**schema, "patternProperties": patterns}


CHANGE = Change(since="1.33", feature="worded-suffixes", queries={"candidates.list": _numbered})
