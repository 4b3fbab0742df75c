"""Where we mean to answer otherwise, each by the name it has in docs/reference/placement.md."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl

from tests.fuzz.agreement import Disagreement, normal
from tests.fuzz.sides import Answer, Call
from tests.fuzz.world import SHARING

Meant: TypeAlias = Callable[["Disagreement"], bool]
"""Whether a disagreement is the one of that name."""

OK: Final = 200
DUE: Final = frozenset({"allow", "vary"})


def _more_headers(one: Disagreement) -> bool:
    """We send headers where the reference forgets them, and else the answers are equal."""
    here, there = normal(one.call, one.ours), normal(one.call, one.theirs)
    more = here["headers"].keys() - there["headers"].keys()
    shared = {name: value for name, value in here["headers"].items() if name not in more}
    return bool(more) and more <= DUE and {**here, "headers": shared} == there


def _left_behind(one: Disagreement) -> bool:
    """The reference remembers a consumer that was cleared, or refused, before it had anything."""
    kept = "consumer generation conflict - expected 0 but got None"
    unknown = "consumer generation conflict - expected null but got 0"
    if kept in one.theirs.raw.decode() or unknown in one.ours.raw.decode():
        return True
    named = {name for call in one.before for name in _named(call)}
    if not named or not one.ours.status == one.theirs.status == OK:
        return False
    return _of_a_type_then(one, named) if "/allocations/" in one.call.path else _by_type(one)


def _named(call: Call) -> Iterator[str]:
    """Consumers that a request leaves with nothing, or gives a type; it may have been refused."""
    body: Any = call.body
    if call.bare_path.startswith("/allocations/"):
        body = {call.bare_path.rpartition("/")[2]: body}
    elif call.bare_path == "/reshaper":
        body = body.get("allocations") if isinstance(body, dict) else None
    elif call.bare_path != "/allocations":
        return
    for name, given in body.items() if isinstance(body, dict) else ():
        if not isinstance(given, dict):
            continue
        if given.get("allocations") in ({}, []) or "consumer_type" in given:
            yield name


def _of_a_type_then(one: Disagreement, named: AbstractSet[str]) -> bool:
    """A write that says no type leaves a consumer the one that it is remembered by."""
    here, there = one.ours.json, one.theirs.json
    return (
        one.call.bare_path.rpartition("/")[2] in named
        and here["consumer_type"] == "unknown"
        and {**there, "consumer_type": "unknown"} == here
    )


def _by_type(one: Disagreement) -> bool:
    """What a project uses is in sum the same, but some of it is of that type there."""
    if one.call.bare_path != "/usages" or "consumer_type=" in one.call.path:
        return False
    sums: list[Counter[str]] = []
    for answer in (one.ours, one.theirs):
        usages = answer.json["usages"]
        sums.append(sum(map(Counter, usages.values()), Counter()))
    return "unknown" in one.ours.json["usages"] and sums[0] == sums[1]


def _groups(one: Disagreement) -> dict[str, dict[str, list[str]]]:
    """The parameters of a candidates query by suffix and word."""
    path, _, query = one.call.path.partition("?")
    found: dict[str, dict[str, list[str]]] = {}
    if path == "/allocation_candidates":
        for key, value in parse_qsl(query, keep_blank_values=True):
            for word in ("resources", "required", "member_of", "in_tree"):
                if key.startswith(word):
                    group = found.setdefault(key.removeprefix(word), {})
                    group.setdefault(word, []).append(value)
    return found


def _piled_up(one: Disagreement) -> bool:
    """The unsuffixed group and a suffixed one ask for the same class."""
    if "group_policy=none" in one.call.path:
        return False
    classes = {
        suffix: {item.partition(":")[0] for item in group.get("resources", [""])[-1].split(",")}
        for suffix, group in _groups(one).items()
    }
    free = classes.pop("", set())
    return any(free & suffixed for suffixed in classes.values())


def _kept_for_one_tree(one: Disagreement) -> bool:
    """What only providers that share give is, in the reference, given to one tree of several.

    So it has fewer candidates where more depends on the tree: other groups, or traits of the root.
    """
    here, there = one.ours.json, one.theirs.json
    bound = len(_groups(one)) > 1 or "root_required" in one.call.path
    if not (bound and one.ours.status == one.theirs.status == OK and "provider_summaries" in here):
        return False
    fewer = len(there["allocation_requests"]) < len(here["allocation_requests"])
    shared = any(
        SHARING in given.get("traits", ()) for given in here["provider_summaries"].values()
    )
    return fewer and shared and (isinstance(_listed(one.ours, one), int) or not _only_there(one))


def _listed(answer: Answer, one: Disagreement) -> Any:
    body = normal(one.call, answer)["body"]
    return body if isinstance(body, int) else body["allocation_requests"]


def _only_there(one: Disagreement) -> list[Any]:
    here = _listed(one.ours, one)
    return [candidate for candidate in _listed(one.theirs, one) if candidate not in here]


def _requires_nothing(one: Disagreement) -> bool:
    """A group without resources requires neither a trait nor an aggregate: no candidates there."""
    there = one.theirs.json
    if one.ours.status != OK or not isinstance(there, dict) or there.get("allocation_requests"):
        return False
    return "allocation_requests" in there and any(
        "resources" not in group
        and all(
            _refuses(text) for word in ("required", "member_of") for text in group.get(word, ())
        )
        for group in _groups(one).values()
    )


def _stays_in_its_tree(one: Disagreement) -> bool:
    """The reference overlooks the tree that a group without resources is asked of."""
    if not any("resources" not in group and "in_tree" in group for group in _groups(one).values()):
        return False
    if not one.ours.status == one.theirs.status == OK:
        return False
    here, there = _listed(one.ours, one), _listed(one.theirs, one)
    if isinstance(here, int) or isinstance(there, int):  # a limit: only their numbers compare
        return len(one.ours.json["allocation_requests"]) < len(
            one.theirs.json["allocation_requests"]
        )
    return len(here) < len(there) and all(candidate in there for candidate in here)


def _refuses(value: str) -> bool:
    return value.startswith("!in:") or all(part.startswith("!") for part in value.split(","))


def _reshaped_to_less_than_nothing(one: Disagreement) -> bool:
    """The reference lets a reshape reserve more than there is."""
    return (
        one.call.bare_path == "/reshaper"
        and one.ours.status == 400
        and b"The reserved value is greater" in one.ours.raw
    )


def _json_although(one: Disagreement) -> bool:
    """An error for somebody who likes HTML better, but takes JSON too."""
    types = [answer.headers.get("content-type", "") for answer in (one.ours, one.theirs)]
    return (
        one.ours.status == one.theirs.status >= 400
        and types[0].startswith("application/json")
        and types[1].startswith("text/html")
    )


def _wildcards(one: Disagreement) -> bool:
    """A prefix that fits more traits when it is taken for a pattern."""
    if not one.ours.status == one.theirs.status == OK or one.call.bare_path != "/traits":
        return False
    here, there = (set(answer.json["traits"]) for answer in (one.ours, one.theirs))
    return "name=startswith:" in one.call.path and here < there


def _media_types_first(one: Disagreement) -> bool:
    """Of a route that the version lacks the reference looks at media types nevertheless."""
    return (
        one.call.bare_path.endswith("/aggregates")
        and one.ours.status == 404
        and one.theirs.status in {406, 415}
    )


def _no_text(one: Disagreement) -> bool:
    """Refused before the dialect is reached."""
    return "%FF" in one.call.path and b"http.bad_request" in one.ours.raw


def _nameless(one: Disagreement) -> bool:
    """The reference lets a provider be renamed to nothing, though not be made so."""
    return one.ours.status == 400 and b"a provider needs a name" in one.ours.raw


DIFFERENCES: Final[Mapping[str, Meant]] = {
    "Required headers are always sent": _more_headers,
    "A consumer without allocations does not exist": _left_behind,
    "Sums of candidates are exact": _piled_up,
    "Sharing providers serve every tree": _kept_for_one_tree,
    "A group without resources may require nothing": _requires_nothing,
    "A group without resources keeps to its tree": _stays_in_its_tree,
    "A reshape cannot reserve more than there is": _reshaped_to_less_than_nothing,
    "Errors are JSON for every client that accepts JSON": _json_although,
    "The prefix of a trait is literal": _wildcards,
    "What a version lacks is not found": _media_types_first,
    "A path or query that is not UTF-8": _no_text,
    "A provider keeps a name": _nameless,
    "Where the reference fails, Moorage answers": lambda one: one.theirs.status == 500,
}


def name_of(disagreement: Disagreement) -> str | None:
    """The difference that a disagreement is; None if it is not meant."""
    for name, meant in DIFFERENCES.items():
        if meant(disagreement):
            return name
    return None
