"""Whether both servers answer the same, apart from order and from what no client may rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.placement.client import Client


def check(first: Client, second: Client, path: str) -> int:
    """Compare whole answers; returns how many entries agreed.

    Raises:
        RuntimeError: they differ, or there is nothing to compare.
    """
    ours, theirs = _normal(first, path), _normal(second, path)
    if not ours["entries"]:
        raise RuntimeError(f"nothing to compare: {path}")
    if ours != theirs:
        raise RuntimeError(f"the answers differ: {path}\n{_difference(ours, theirs)}")
    return len(ours["entries"])


def _normal(client: Client, path: str) -> dict[str, Any]:
    answer = client.get(path)
    if answer.status != 200:  # noqa: PLR2004 - OK
        raise RuntimeError(f"status {answer.status}: {path}: {answer.body[:500]!r}")
    body = answer.json
    if "resource_providers" in body:
        named = [(one["uuid"], one["name"]) for one in body["resource_providers"]]
        return {"entries": sorted(named), "summaries": {}}
    entries = [_candidate(one) for one in body["allocation_requests"]]
    for summary in body["provider_summaries"].values():
        summary["traits"].sort()
    return {"entries": sorted(entries), "summaries": body["provider_summaries"]}


def _candidate(one: dict[str, Any]) -> str:
    allocations = sorted(
        (uuid, sorted(given["resources"].items())) for uuid, given in one["allocations"].items()
    )
    mappings = sorted((suffix, sorted(uuids)) for suffix, uuids in one["mappings"].items())
    return repr((allocations, mappings))


def _difference(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    lines = [f"entries: ours {len(ours['entries'])}, theirs {len(theirs['entries'])}"]
    mine, other = set(ours["entries"]), set(theirs["entries"])
    lines += [f"only ours: {one}" for one in sorted(mine - other)[:2]]
    lines += [f"only theirs: {one}" for one in sorted(other - mine)[:2]]
    for uuid, summary in ours["summaries"].items():
        if theirs["summaries"].get(uuid) != summary:
            lines.append(f"summary: ours {summary}\ntheirs {theirs['summaries'].get(uuid)}")
            break
    return "\n".join(lines)
