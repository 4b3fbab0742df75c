"""Versions of templates with their functions, and the text that a template is written as."""

from __future__ import annotations

from typing import Any, Final

import yaml

VERSIONS: Final = (
    "2013-05-23",
    "2014-10-16",
    "2015-04-30",
    "2015-10-15",
    "2016-04-08",
    "2016-10-14",
    "newton",
    "2017-02-24",
    "ocata",
    "2017-09-01",
    "pike",
    "2018-03-02",
    "queens",
    "2018-08-31",
    "rocky",
    "2021-04-16",
    "wallaby",
)
_SINCE: Final = {
    "repeat": "2015-04-30",
    "digest": "2015-04-30",
    "str_split": "2015-10-15",
    "map_merge": "2016-04-08",
    "if": "2016-10-14",
    "map_replace": "2016-10-14",
    "yaql": "2016-10-14",
    "filter": "2017-02-24",
    "str_replace_strict": "2017-02-24",
    "make_url": "2017-09-01",
    "list_concat": "2017-09-01",
    "list_concat_unique": "2017-09-01",
    "str_replace_vstrict": "2017-09-01",
    "contains": "2017-09-01",
    # Not functions, but ways of theirs.
    "join of several lists": "2015-10-15",
    "json in text": "2015-10-15",
    "repeat over a mapping": "2016-10-14",
    "repeat without permutations": "2017-09-01",
    "conditions": "2016-10-14",
    "if without else": "2021-04-16",
    "condition by contains": "2017-09-01",
}
_UNTIL: Final = {
    "Fn::Select": "2015-04-30",
    "Fn::Join": "2013-05-23",
    "Fn::Replace": "2013-05-23",
    "Fn::Split": "2013-05-23",
    "Ref": "2013-05-23",
}

_FIRST: Final = "@raw("
_LAST: Final = ")@"


def has(version: str, what: str) -> bool:
    """Whether a version of templates has a function, or a way of one."""
    place = VERSIONS.index(version)
    if what in _UNTIL:
        return place <= VERSIONS.index(_UNTIL[what])
    return place >= VERSIONS.index(_SINCE.get(what, VERSIONS[0]))


def raw(text: str) -> str:
    """A scalar that is written as it is, without quotes."""
    return _FIRST + text + _LAST


def write(document: Any) -> str:
    """The document as YAML, without anchors."""
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    for quote in ("'", '"', ""):
        text = text.replace(quote + _FIRST, "").replace(_LAST + quote, "")
    return text


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True
