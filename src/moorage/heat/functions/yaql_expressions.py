"""The function `yaql`: the value of an expression over data."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.heat import yaql_engine

if TYPE_CHECKING:
    from moorage.heat.functions.call import Call, Table
    from moorage.heat.yaml_tree import Plain, YamlNode


def _yaql(call: Call) -> YamlNode:
    fields = call.entries(call.argument)
    for name, node in fields.items():
        if name not in {"expression", "data"}:
            raise call.invalid(f"takes an expression and data, not {name!r}", node)
    if "expression" not in fields:
        raise call.invalid("the key 'expression' is missing")
    expression = call.text(fields["expression"])
    data: Plain = {}
    if "data" in fields:
        if fields["data"].size > yaql_engine.MAX_VALUE:
            raise call.invalid(f"data of more than {yaql_engine.MAX_VALUE} values", fields["data"])
        data = call.known(fields["data"])
    try:
        return call.value(yaql_engine.evaluate(expression, data, call.spend))
    except yaql_engine.YaqlError as error:
        raise call.invalid(str(error), fields["expression"]) from error


FUNCTIONS: Final[Table] = MappingProxyType({"yaql": _yaql})
