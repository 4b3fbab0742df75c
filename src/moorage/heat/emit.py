"""Write a template again, with its decision in it, as plain HOT.

What is added, on resources of the root template:

- `metadata: {moorage: {decided: …}}` on every resource with members: ensemble, decision and
  each member's place, by its opaque labels. Heat stores it and passes it over.
- Nova metadata `moorage:ensemble` and `moorage:member` on servers (in a resource group with
  the index variable), so that the server itself says which member it is. Not tags: Nova allows
  no slash in them. Left alone where the template computes the whole mapping by a function.

A parameter that was given with the call gets its value for a default, unless it is hidden: so
that the template, with the same environment, means the same members again.

Everything else stays as it was, keys in their order; comments and anchors do not survive.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import yaml

from moorage.domain.ensembles import server_metadata
from moorage.heat import expect
from moorage.heat.annotation import DECIDED, KEY
from moorage.heat.marked import mark, parse
from moorage.heat.parameters import to_default
from moorage.heat.resources.os_heat_resource_group import INDEX
from moorage.heat.resources.os_heat_resource_group import TYPES as GROUP
from moorage.heat.resources.os_nova_server import TYPES as SERVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.ensembles import MemberName
    from moorage.heat.marked import Marked, Plain

_WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision as a template carries it; `places` has each member's labels per level."""

    ensemble: str
    decision: str
    places: Mapping[MemberName, Mapping[str, str]]


def emit(
    text: str,
    keys: Mapping[MemberName, str],
    decided: Decided,
    given: Mapping[str, Plain] = MappingProxyType({}),
) -> str:
    """The root template `text` with the decision in it; `keys` as it was compiled.

    `given` are the parameters that came with the call.

    Raises:
        InvalidDescription: a resource's metadata is computed, so nothing can be added to it.
    """
    marked = parse(text)  # also bounds what the constructor below is going to build
    document: dict[str, Any] = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    _default(document, marked, given)
    inside: dict[str, dict[MemberName, str]] = {}
    for member, key in keys.items():
        inside.setdefault(key.partition("/")[0], {})[member] = key
    resources = document["resources"] = dict(document["resources"])
    for name, members in inside.items():
        resource = resources[name] = dict(resources[name])
        _refuse_computed(marked, name, resource)
        _annotate(resource, sorted(members), decided)
        _name_members(name, resource, members.values(), decided.ensemble)
    return str(
        yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    )


def _default(document: dict[str, Any], marked: Marked, given: Mapping[str, Plain]) -> None:
    if not given:
        return
    declared = expect.mapping(expect.mapping(marked)["parameters"])
    parameters = document["parameters"] = dict(document["parameters"])
    for name, value in given.items():
        node = mark(value, line=1, path=f"parameters.{name}")
        default = to_default(name, declared[name], node)
        if default is not None:
            parameters[name] = {**parameters[name], "default": default}


def _refuse_computed(marked: Marked, name: str, resource: dict[str, Any]) -> None:
    """There must be room for the annotation: nothing can be added to a function's value."""
    metadata = resource.get("metadata")
    annotation = metadata.get(KEY) if isinstance(metadata, dict) else None
    if _is_call(metadata) or _is_call(annotation):
        place = expect.mapping(expect.mapping(marked)["resources"])[name]
        raise place.invalid(
            "the metadata is computed by a function, so the decision cannot be written into it"
        )


def _annotate(resource: dict[str, Any], members: list[MemberName], decided: Decided) -> None:
    metadata = dict(resource.get("metadata") or {})
    metadata[KEY] = {
        **(metadata.get(KEY) or {}),
        DECIDED: {
            "ensemble": decided.ensemble,
            "decision": decided.decision,
            "places": {str(member): dict(decided.places[member]) for member in members},
        },
    }
    resource["metadata"] = metadata


def _name_members(name: str, resource: dict[str, Any], keys: Iterable[str], ensemble: str) -> None:
    """Let servers say who they are: where the resource is one, or a group of them.

    Keys deeper than that mean a nested template, whose parameters are its own.
    """
    depth = max(key.count("/") for key in keys)
    if resource["type"] in SERVER and depth == 0:
        _name_server(resource, ensemble, f"{name}[0]")
    elif resource["type"] in GROUP and depth == 1:
        properties = resource["properties"] = dict(resource["properties"])
        definition = properties["resource_def"]
        variable = properties.get("index_var") or INDEX
        if definition.get("type") in SERVER and isinstance(variable, str):
            definition = properties["resource_def"] = dict(definition)
            _name_server(definition, ensemble, f"{name}[{variable}]")


def _name_server(server: dict[str, Any], ensemble: str, member: str) -> None:
    if _is_call(server["properties"]):
        return
    properties = server["properties"] = dict(server["properties"])
    metadata = properties.get("metadata") or {}
    if isinstance(metadata, dict) and not _is_call(metadata):
        properties["metadata"] = {**metadata, **server_metadata(ensemble, member)}


def _is_call(value: object) -> bool:
    """Whether a value is a function that can yield a mapping: then it is not ours to add to."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _CALLS


_CALLS: Final = frozenset({"get_param", "get_attr"})

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Loader(_BASE):  # type: ignore[misc] # the C loader has no types
    """A safe loader in which times and keys stay text, as `marked` reads them.

    A resource or parameter may well be called `on` or `1`.
    """

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:  # noqa: ANN401, FBT001, FBT002 - the loader's own signature
        self.flatten_mapping(node)
        return {
            self.construct_scalar(key): self.construct_object(value, deep=deep)
            for key, value in node.value
        }


class _Dumper(_DUMPER):  # type: ignore[misc] # the C dumper has no types
    """A safe dumper that writes texts of several lines as blocks, and no anchors."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - every value is written out
        return True


def _text(loader: Any, node: Any) -> object:  # noqa: ANN401 - as above
    return loader.construct_scalar(node)


def _block(dumper: Any, text: str) -> Any:  # noqa: ANN401 - as above
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _text)
_Loader.add_constructor("tag:yaml.org,2002:value", _text)
_Dumper.add_representer(str, _block)
