"""Functions that refer to something by its name: parameters, resources, files and mappings."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import DeferredValue, ResourceReference
from moorage.heat.file_names import find_file
from moorage.heat.yaml_tree import to_node

if TYPE_CHECKING:
    from moorage.heat.functions.call import Call, Table
    from moorage.heat.yaml_tree import YamlNode


def _get_param(call: Call) -> YamlNode:
    """A parameter's value, or what stands at a path inside it; the empty text if nothing does."""
    node = call.here(call.argument)
    listed = node.value if isinstance(node.value, list) else [node]
    if not listed:
        raise call.invalid("a name is needed")
    found = _parameter(call, listed[0])
    for step in listed[1:]:
        below = _inside(call.here(found), call.here(step))
        if below is None:
            call.remark(
                f"nothing at {typed_yaml.shown(step)} in {typed_yaml.kind(found)};"
                " the empty text is taken, as Heat does"
            )
            return call.value("")
        found = below
    return call.placed(found)


def _parameter(call: Call, node: YamlNode) -> YamlNode:
    name = call.text(node)
    found = call.scope.parameters.get(name)
    if found is None:
        raise node.invalid(f"get_param: the template has no parameter {name!r}")
    return found


def _inside(node: YamlNode, step: YamlNode) -> YamlNode | None:
    """What stands at a step in a value, by Python's rules as Heat takes them."""
    match node.value, step.value:
        case dict() as items, str() as key:
            return items.get(key)
        case (list() | str()) as sequence, str() | int() as key:
            try:
                found = sequence[int(key)]
            except (ValueError, IndexError):
                return None
            return to_node(found, line=1, path="") if isinstance(found, str) else found
        case _:
            return None


def _get_resource(call: Call) -> YamlNode:
    return _reference(call, typed_yaml.name(call.here(call.argument)))


def _reference(call: Call, name: str) -> YamlNode:
    if name not in call.scope.resources:
        raise call.argument.invalid(f"{call.name}: the template has no resource {name!r}")
    return call.value(ResourceReference.to(call.scope.stack / name))


def _get_attr(call: Call) -> YamlNode:
    node = call.here(call.argument)
    listed = node.value if isinstance(node.value, list) else [node]
    if not listed:
        raise call.invalid("a resource and an attribute are needed")
    name = typed_yaml.name(call.here(listed[0]))
    if name not in call.scope.resources:
        raise call.argument.invalid(f"{call.name}: the template has no resource {name!r}")
    what = ".".join(typed_yaml.shown(one) for one in listed[1:]) or "attributes"
    return call.value(DeferredValue(f"{what} of {call.scope.stack / name}"))


def _get_file(call: Call) -> YamlNode:
    written = call.text(call.argument)
    name = find_file(written, of=call.scope.file, files=call.scope.files)
    content = call.scope.files.get(name)
    if content is None:
        raise call.invalid(f"the file {name} is missing among the files")
    return call.value(content)


def _ref(call: Call) -> YamlNode:
    """A resource's id or a parameter's value."""
    name = call.text(call.argument)
    if name in call.scope.resources:
        return _reference(call, name)
    found = call.scope.parameters.get(name)
    if found is None:
        raise call.argument.invalid(f"Ref: the template has no resource or parameter {name!r}")
    return call.placed(found)


def _find_in_map(call: Call) -> YamlNode:
    name, *path = call.parts("mapping", "key", "value")
    word = call.text(name)
    found = call.scope.mappings.get(word)
    if found is None:
        raise call.invalid(f"the template has no mapping {word!r}", name)
    for step in path:
        key = typed_yaml.name(call.here(step))
        below = call.entries(found).get(key)
        if below is None:
            raise call.invalid(f"nothing at {key!r} in the mapping {word}", step)
        found = below
    return call.placed(found)


def _zones(call: Call) -> YamlNode:
    """Heat asks Nova for them, whatever region the argument names."""
    return call.value(DeferredValue("the list of availability zones"))


def _facade(call: Call) -> YamlNode:
    what = call.text(call.argument)
    if what.lower().replace("_", "") not in {"metadata", "deletionpolicy", "updatepolicy"}:
        raise call.invalid(f"a resource of the parent stack has no {what!r} to give")
    return call.value(DeferredValue(f"{what} of the resource that stands for {call.scope.stack}"))


FUNCTIONS: Final[Table] = MappingProxyType(
    {
        "get_param": _get_param,
        "get_resource": _get_resource,
        "get_attr": _get_attr,
        "get_file": _get_file,
        "resource_facade": _facade,
        "Ref": _ref,
        "Fn::FindInMap": _find_in_map,
        "Fn::GetAtt": _get_attr,
        "Fn::GetAZs": _zones,
        "Fn::ResourceFacade": _facade,
    }
)
