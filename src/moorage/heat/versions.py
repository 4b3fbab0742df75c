"""Template versions, and the functions of each.

A mapping of one key is a function only where the template's version has a function of that
name; elsewhere it is plain data. The names are those of Heat's own template classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.heat.scalars import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.yaml_tree import YamlNode

_NAMES: Final = frozenset[str]()
_AWS_TEXTS: Final = frozenset(
    {
        "Fn::Join",
        "Fn::Split",
        "Fn::Replace",
        "Fn::Base64",
        "Fn::MemberListToMap",
        "Fn::ResourceFacade",
    }
)
_AWS: Final = _AWS_TEXTS | {"Ref", "Fn::GetAZs", "Fn::Select"}
_ALWAYS: Final = frozenset(
    {
        "get_param",
        "get_resource",
        "get_attr",
        "get_file",
        "list_join",
        "str_replace",
        "resource_facade",
    }
)
_2015_04: Final = _ALWAYS | {"repeat", "digest", "Fn::Select"}
_2015_10: Final = _2015_04 - {"Fn::Select"} | {"str_split"}
_2016_04: Final = _2015_10 | {"map_merge"}
_NEWTON: Final = _2016_04 | {"yaql", "map_replace", "if"}
_OCATA: Final = _NEWTON | {"filter", "str_replace_strict"}
_PIKE: Final = _OCATA | {
    "make_url",
    "list_concat",
    "list_concat_unique",
    "str_replace_vstrict",
    "contains",
}
_CFN: Final = _AWS | {"Fn::FindInMap", "Fn::GetAtt"}
_JUDGE: Final = frozenset({"get_param", "equals", "not", "and", "or"})
"""Functions of a condition since newton."""
_CFN_JUDGE: Final = frozenset(
    {"Ref", "Fn::FindInMap", "Fn::Equals", "Fn::Not", "Fn::And", "Fn::Or"}
)

HOT: Final = "heat_template_version"
CFN: Final = ("HeatTemplateFormatVersion", "AWSTemplateFormatVersion")
"""Keys that state the version of a template in the form of AWS CloudFormation."""


@dataclass(frozen=True, slots=True)
class Version:
    """How the version of a template affects reading it."""

    name: str
    date: str
    """When this dialect came, as an ISO date; the names of releases have one, too. Empty for the
    form of AWS."""
    functions: frozenset[str]
    in_conditions: frozenset[str]
    """Functions of a condition; no others are allowed there."""

    @property
    def is_cfn(self) -> bool:
        """Whether it has the form of AWS CloudFormation: other sections, keys and functions."""
        return not self.date

    @property
    def removed(self) -> frozenset[str]:
        """Functions of older versions, which are errors in this one and never data."""
        return _NAMES if self.is_cfn else _AWS - self.functions

    @property
    def joins_json(self) -> bool:
        """Whether lists and maps in `str_replace` and `list_join` become JSON text.

        `list_join` takes several lists then, too.
        """
        return self.date >= "2015-10-15"

    @property
    def has_conditions(self) -> bool:
        """Whether there are conditions, and `external_id` on resources."""
        return bool(self.in_conditions)

    @property
    def repeats_maps(self) -> bool:
        """Whether `repeat` takes the keys of a mapping."""
        return self.date >= "2016-10-14"

    @property
    def repeats_in_step(self) -> bool:
        """Whether `repeat` knows `permutations`."""
        return self.date >= "2017-09-01"

    @property
    def may_drop_entry(self) -> bool:
        """Whether an `if` may lack its second value: false leaves the entry out."""
        return self.date >= "2021-04-16"


_YAQL_JUDGE: Final = _JUDGE | {"yaql", "contains"}
_DIALECTS: Final = (
    ("2013-05-23", None, _ALWAYS | _AWS, _NAMES),
    ("2014-10-16", None, _ALWAYS | {"Fn::Select"}, _NAMES),
    ("2015-04-30", None, _2015_04, _NAMES),
    ("2015-10-15", None, _2015_10, _NAMES),
    ("2016-04-08", None, _2016_04, _NAMES),
    ("2016-10-14", "newton", _NEWTON, _JUDGE),
    ("2017-02-24", "ocata", _OCATA, _JUDGE),
    ("2017-09-01", "pike", _PIKE, _YAQL_JUDGE),
    ("2018-03-02", "queens", _PIKE, _YAQL_JUDGE),
    ("2018-08-31", "rocky", _PIKE, _YAQL_JUDGE),
    ("2021-04-16", "wallaby", _PIKE, _YAQL_JUDGE),
)

VERSIONS: Final[Mapping[str, Version]] = MappingProxyType(
    {
        name: Version(name, date, functions, judge)
        for date, release, functions, judge in _DIALECTS
        for name in (date, release)
        if name is not None
    }
)
"""Versions by what `heat_template_version` says."""

_CFN_VERSIONS: Final[Mapping[tuple[str, str], Version]] = MappingProxyType(
    {
        (CFN[0], "2012-12-12"): Version("2012-12-12", "", _CFN, _NAMES),
        (CFN[1], "2010-09-09"): Version("2010-09-09", "", _CFN | {"Fn::If"}, _CFN_JUDGE),
    }
)


def find_version(node: YamlNode) -> Version:
    """The version that a template states under `heat_template_version`.

    Raises:
        InvalidDescription: none of the known ones.
    """
    version = VERSIONS.get(node.value) if isinstance(node.value, str) else None
    if version is None:
        raise node.invalid(f"unknown {HOT}; known: {', '.join(VERSIONS)}")
    return version


def version_of(template: YamlNode) -> Version:
    """The version of a whole template, in the form of HOT or of AWS CloudFormation.

    Raises:
        InvalidDescription: the template states none, two, or one that is not known.
    """
    top = template.value if isinstance(template.value, dict) else {}
    keys = [key for key in (HOT, *CFN) if key in top]
    if not keys:
        raise template.invalid(f"not a Heat template: {HOT} is missing")
    if len(keys) > 1:
        raise top[keys[1]].invalid(f"two versions are stated: {' and '.join(keys)}")
    stated = top[keys[0]]
    if keys == [HOT]:
        return find_version(stated)
    version = _CFN_VERSIONS.get((keys[0], str(stated.value)))
    if version is None:
        known = ", ".join(date for key, date in _CFN_VERSIONS if key == keys[0])
        raise stated.invalid(f"unknown {keys[0]} {excerpt(str(stated.value))}; known: {known}")
    return version
