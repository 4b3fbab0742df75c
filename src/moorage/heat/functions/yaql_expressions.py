"""The function `yaql`: an expression over data."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from moorage.heat.functions.call import Call, Table
    from moorage.heat.yaml_tree import YamlNode


def _yaql(call: Call) -> YamlNode:
    raise call.invalid("expressions are not worked out here")


FUNCTIONS: Final[Table] = MappingProxyType({"yaql": _yaql})
