"""Template versions and their functions.

A mapping of one key is a function only where the template's version has a function of that
name; elsewhere it is plain data. The names are those of Heat's own template classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.yaml_tree import YamlNode

_AWS: Final = frozenset(
    {
        "Ref",
        "Fn::GetAZs",
        "Fn::Select",
        "Fn::Join",
        "Fn::Split",
        "Fn::Replace",
        "Fn::Base64",
        "Fn::MemberListToMap",
        "Fn::ResourceFacade",
    }
)
_2013: Final = _AWS | {
    "get_param",
    "get_resource",
    "get_attr",
    "list_join",
    "str_replace",
    "resource_facade",
    "get_file",
}
_2015_04: Final = _2013 | {"repeat", "digest"}
_2015_10: Final = _2015_04 | {"str_split"}
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


@dataclass(frozen=True, slots=True)
class Version:
    """How a `heat_template_version` affects reading the template."""

    name: str
    functions: frozenset[str]
    joins_json: bool
    """Since 2015-10-15 lists and maps in `str_replace` and `list_join` become JSON text, and
    `list_join` takes several lists."""
    has_conditions: bool
    """Since newton: conditions, and `external_id` on resources."""

    @property
    def may_drop_entry(self) -> bool:
        """Since wallaby an `if` may lack its second value: false leaves the entry out."""
        return self.name in {"2021-04-16", "wallaby"}


VERSIONS: Final[Mapping[str, Version]] = MappingProxyType(
    {
        name: Version(name, functions, joins_json, has_conditions)
        for name, functions, joins_json, has_conditions in (
            ("2013-05-23", _2013, False, False),
            ("2014-10-16", _2013, False, False),
            ("2015-04-30", _2015_04, False, False),
            ("2015-10-15", _2015_10, True, False),
            ("2016-04-08", _2016_04, True, False),
            ("2016-10-14", _NEWTON, True, True),
            ("newton", _NEWTON, True, True),
            ("2017-02-24", _OCATA, True, True),
            ("ocata", _OCATA, True, True),
            ("2017-09-01", _PIKE, True, True),
            ("pike", _PIKE, True, True),
            ("2018-03-02", _PIKE, True, True),
            ("queens", _PIKE, True, True),
            ("2018-08-31", _PIKE, True, True),
            ("rocky", _PIKE, True, True),
            ("2021-04-16", _PIKE, True, True),
            ("wallaby", _PIKE, True, True),
        )
    }
)


def find_version(node: YamlNode) -> Version:
    """The version that a template states.

    Raises:
        InvalidDescription: none of the known ones.
    """
    version = VERSIONS.get(node.value) if isinstance(node.value, str) else None
    if version is None:
        raise node.invalid(f"unknown heat_template_version; known: {', '.join(VERSIONS)}")
    return version
