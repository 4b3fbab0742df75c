"""Functions that merge mappings and replace their keys and values."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import DeferredValue

if TYPE_CHECKING:
    from moorage.heat.functions.call import Call, Table
    from moorage.heat.yaml_tree import YamlNode


def _map_merge(call: Call) -> YamlNode:
    maps = [_mapping(call, one) for one in call.items(call.argument)]
    call.spend(sum(map(len, maps)))
    return call.collection({key: one for some in maps for key, one in some.items()})


def _mapping(call: Call, node: YamlNode | None) -> dict[str, YamlNode]:
    """A mapping; nothing is an empty one."""
    return {} if node is None or call.here(node).value is None else call.entries(node)


def _map_replace(call: Call) -> YamlNode:
    """A mapping with some of its keys and values replaced."""
    given, replacing = (_mapping(call, one) for one in call.parts("mapping", "replacements"))
    for name, node in replacing.items():
        if name not in {"keys", "values"}:
            raise call.invalid(f"replacements are of keys and values, not {name!r}", node)
    keys = _mapping(call, replacing.get("keys"))
    values = _mapping(call, replacing.get("values"))
    made: dict[str, YamlNode] = {}
    for key, node in given.items():
        new = _key(call, key, keys)
        if new is None:
            new = key
        elif (new != key and new in given) or new in made:
            raise call.invalid(f"the key {new!r} would be there twice")
        # Nobody knows yet whether a deferred value will be among those to replace.
        later = isinstance(node.value, DeferredValue)
        made[new] = node if later else _new_value(node, values)
    return call.collection(made)


def _key(call: Call, key: str, keys: dict[str, YamlNode]) -> str | None:
    node = keys.get(key)
    return None if node is None or node.value is None else typed_yaml.name(call.here(node))


def _new_value(node: YamlNode, values: dict[str, YamlNode]) -> YamlNode:
    return values.get(node.value, node) if isinstance(node.value, str) else node


_MEMBER: Final = re.compile(r"\.member\.([0-9]{1,9})\.(.*)")


def _member_list_to_map(call: Call) -> YamlNode:
    """A mapping from texts such as `.member.0.Name=key` and `.member.0.Value=door`."""
    name, value, members = call.parts("key name", "value name", "members")
    key_name, value_name = call.text(name), call.text(value)
    texts: dict[str, str] = {}
    for one in call.items(members):
        word, equals, rest = call.text(one).partition("=")
        if not equals:
            raise call.invalid("a member is written name=value", one)
        texts[word] = rest
    by_number: dict[int, dict[str, str]] = {}
    for word, text in texts.items():
        if (found := _MEMBER.match(word)) is not None:
            by_number.setdefault(int(found[1]), {})[found[2]] = text
    made = {
        pair[key_name]: pair[value_name]
        for _, pair in sorted(by_number.items())
        if key_name in pair and value_name in pair
    }
    return call.value({**made})


FUNCTIONS: Final[Table] = MappingProxyType(
    {
        "map_merge": _map_merge,
        "map_replace": _map_replace,
        "Fn::MemberListToMap": _member_list_to_map,
    }
)
