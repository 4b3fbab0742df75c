"""The page of the native API's errors, from their one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gen.markdown import code, table

if TYPE_CHECKING:
    from moorage.api.native.errors import Rule

ABOUT: Final = """\
A refusal of the native API is a document with `errors`, of which the first has `status`, `code`,
`title`, `detail`, `request_id` and what else the code needs, such as `path` or `explanation`.
Programs go by `code`; `detail` is for people, and may be worded otherwise in a later version. The
log has the same `request_id`. Placement's and Blazar's APIs answer in the forms of their
references."""
HEAD: Final = ("Status", "Code", "Means", "What to do")


def page() -> str:
    """A row for each code, by status."""
    from moorage.api.native.errors import TABLE

    rules = sorted(set(TABLE.values()), key=lambda rule: (rule.status, rule.code))
    return "\n\n".join(["# Errors", ABOUT, table(HEAD, map(row, rules))])


def row(rule: Rule) -> tuple[str, ...]:
    """One code, with an anchor to link to."""
    name = f"ensemble.{rule.code}"
    return str(rule.status), f'<a id="{rule.code}"></a>{code(name)}', rule.title, rule.remedy
