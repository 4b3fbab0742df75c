"""The query of GET /allocation_candidates: request groups by suffix, and what relates them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from moorage.api.placement import query
from moorage.api.placement.query import Aggregates, Traits
from moorage.api.placement.refusals import BAD_VALUE, DUPLICATE_KEY, MISSING_VALUE, BadQuery
from moorage.api.placement.schemas import GROUPED, NUMBERED_SUFFIX, SUFFIX
from moorage.api.placement.validation import is_uuid_like
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates.query import CandidateQuery, Rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.api.placement.request import Request
    from moorage.http.microversion import NegotiatedVersion

MAX_GROUPS: Final = 128
"""Request groups of one query; the search goes as deep as there are groups."""

_KEPT: Final = 256
"""Queries that are kept as read: schedulers ask for the same flavors over and over."""

_IN_TREE: Final = "in_tree"
_SOME_TREE: Final = "00000000-0000-0000-0000-000000000000"
"""Stands for the tree that a query names, where it does not matter which."""

MAX_DIGITS: Final = 9
"""A limit with more digits is none."""

_WORDS: Final = re.compile(f"({'|'.join(GROUPED)})({SUFFIX})?")
_NUMBERS: Final = re.compile(f"({'|'.join(GROUPED)})({NUMBERED_SUFFIX})?")


@dataclass(slots=True)
class _Parts:
    """The parameters of one group read so far."""

    resources: Mapping[str, int] = field(default_factory=dict)
    traits: Traits = field(default_factory=Traits)
    aggregates: Aggregates = field(default_factory=Aggregates)
    in_tree: str | None = None


def read(request: Request) -> CandidateQuery:
    """Read the whole query, cached for the most recent ones.

    Schedulers ask for the same flavors in tree after tree, so the rest of a query is kept without
    its trees.

    Raises:
        BadQuery: it breaks the grammar, or its parts contradict each other.
    """
    trees: dict[str, str] = {}
    rest: list[tuple[str, str]] = []
    for key, value in request.query:
        if key.startswith(_IN_TREE):
            trees[key.removeprefix(_IN_TREE)] = value.strip()
            rest.append((key, _SOME_TREE))
        else:
            rest.append((key, value))
    if not trees or not all(map(is_uuid_like, set(trees.values()))):
        return _read(_Asked(request.negotiated, request.query))
    return _read(_Asked(request.negotiated, tuple(rest))).in_trees(trees)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The cache key of a candidates query: its version and parameters."""

    negotiated: NegotiatedVersion
    query: tuple[tuple[str, str], ...]

    def has(self, feature: str) -> bool:
        """As of `Request`."""
        return self.negotiated.has(feature)

    def values(self, key: str) -> list[str]:
        """As of `Request`."""
        return [value for name, value in self.query if name == key]


@lru_cache(maxsize=_KEPT)
def _read(request: _Asked) -> CandidateQuery:
    root = _root_traits(request)
    subtrees = tuple(_subtree(value) for value in request.values("same_subtree"))
    groups = _groups(request)
    if len(groups) > MAX_GROUPS:
        raise BadQuery(f"At most {MAX_GROUPS} request groups can be asked for together.")
    if request.has("same-subtree"):
        _check_suffixes(groups, subtrees)
    else:
        _check_no_orphans(groups)
    if request.has("forbidden-traits"):
        _check_no_conflicts(groups)
    policy = next(iter(request.values("group_policy")), None)
    if policy is None and sum(bool(suffix) for suffix in groups) > 1:
        raise BadQuery(
            'The "group_policy" parameter is required when specifying more than one '
            '"resources{N}" parameter.'
        )
    return CandidateQuery(
        groups=tuple(_group(suffix, parts) for suffix, parts in groups.items()),
        rules=Rules(isolate=policy == "isolate", same_subtrees=subtrees),
        root_required=root.required,
        root_forbidden=root.forbidden,
        one_provider_per_tree=not request.has("nested-candidates"),
    )


def limit(request: Request) -> int | None:
    """How many candidates to return at most; the schema has judged the number."""
    values = request.values("limit")
    if not values or len(values[0]) > MAX_DIGITS:
        return None
    return int(values[0])


def _groups(request: _Asked) -> dict[str, _Parts]:
    pattern = _WORDS if request.has("worded-suffixes") else _NUMBERS
    groups: dict[str, _Parts] = {}
    for key, value in dict(request.query).items():
        match = pattern.fullmatch(key)
        if match is None:
            continue
        name, suffix = match[1], match[2] or ""
        parts = groups.setdefault(suffix, _Parts())
        if name == "resources":
            parts.resources = query.resources(value)
        elif name == "required":
            parts.traits = query.traits(request, key)
        elif name == "member_of":
            parts.aggregates = query.aggregates(request, suffix)
        else:
            parts.in_tree = query.tree(value)
    return groups


def _group(suffix: str, parts: _Parts) -> RequestGroup:
    return RequestGroup(
        suffix=suffix,
        resources=parts.resources,
        required=parts.traits.required,
        forbidden=parts.traits.forbidden,
        member_of=parts.aggregates.required,
        not_member_of=parts.aggregates.forbidden,
        in_tree=parts.in_tree,
    )


def _root_traits(request: _Asked) -> Traits:
    values = request.values("root_required")
    if not values:
        return Traits()
    if len(values) > 1:
        raise BadQuery(
            "Query parameter 'root_required' may be specified only once.", code=DUPLICATE_KEY
        )
    found = query.trait_list(values[0], forbidden=True, any_of=False)
    if found.conflicts():
        names = ", ".join(sorted(name for one in found.conflicts() for name in one))
        raise BadQuery(
            f"Conflicting required and forbidden traits found in root_required: {names}",
            code=BAD_VALUE,
        )
    return found


def _subtree(value: str) -> frozenset[str]:
    suffixes = frozenset(part.strip() for part in value.split(","))
    if "" in suffixes:
        raise BadQuery(
            "Empty string (unsuffixed group) can not be specified in `same_subtree` ",
            code=BAD_VALUE,
        )
    return suffixes


def _check_suffixes(groups: Mapping[str, _Parts], subtrees: tuple[frozenset[str], ...]) -> None:
    """From 1.36: groups without resources must be named in `same_subtree`, and it only groups."""
    bare = [suffix for suffix, parts in groups.items() if not parts.resources]
    if len(bare) == len(groups):
        raise BadQuery(
            "There must be at least one resources or resources[$S] parameter.",
            code=MISSING_VALUE,
        )
    named = frozenset[str]().union(*subtrees)
    lost = [suffix for suffix in bare if suffix not in named]
    if lost:
        raise BadQuery(
            "Resourceless suffixed group request should be specified in `same_subtree` query "
            f"param: bad group(s) - {lost}.",
            code=BAD_VALUE,
        )
    unknown = sorted(named - set(groups))
    if unknown:
        raise BadQuery(
            f"Real suffixes should be specified in `same_subtree`: {unknown} not found in "
            f"{list(groups)}.",
            code=BAD_VALUE,
        )


def _check_no_orphans(groups: Mapping[str, _Parts]) -> None:
    """Before 1.36: every group must ask for resources."""
    bare = {suffix: parts for suffix, parts in groups.items() if not parts.resources}
    orphans = [f"required{suffix}" for suffix, parts in bare.items() if parts.traits.required]
    if orphans:
        raise BadQuery(
            "All traits parameters must be associated with resources.  Found the following "
            f"orphaned traits keys: {', '.join(orphans)}"
        )
    orphans = [f"member_of{suffix}" for suffix, p in bare.items() if p.aggregates != Aggregates()]
    if orphans:
        raise BadQuery(
            "All member_of parameters must be associated with resources. Found the following "
            f"orphaned member_of keys: {', '.join(orphans)}"
        )
    if bare:
        raise BadQuery("All request groups must specify resources.")
    if not groups:
        raise BadQuery("At least one request group (`resources` or `resources{$S}`) is required.")


def _check_no_conflicts(groups: Mapping[str, _Parts]) -> None:
    conflicts = sorted(
        f"required{suffix}: ({', '.join(sorted(any_of))})"
        for suffix, parts in groups.items()
        for any_of in parts.traits.conflicts()
    )
    if conflicts:
        raise BadQuery(
            "Conflicting required and forbidden traits found in the following traits keys: "
            + ", ".join(conflicts)
        )
