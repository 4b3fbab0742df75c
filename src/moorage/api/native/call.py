"""A request as handlers get it, and their reply; independent of the framework."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlencode

from msgspec import Raw

from moorage.api.native.protocol import PreconditionRequired, if_none_match
from moorage.domain.errors import InvalidDescription
from moorage.domain.words import did_you_mean
from moorage.http.negotiation import accepts_gzip
from moorage.usecases.compliance.impact import with_impact
from moorage.usecases.paging import Order, Page
from moorage.usecases.shared.pending_work import leaving_work
from moorage.wire.fields import Link

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from msgspec import Struct

    from moorage.usecases.compliance.impact import Impact
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """A request that passed routing, access rules, query and body checks."""

    env: UseCaseEnvironment
    caller: Caller
    base: str
    """Where the API is mounted: the start of every link."""
    path: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    query: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    body: Any = None
    """The route's request struct, decoded."""
    matched: int | None = None
    """The generation in `If-Match`."""
    match_given: bool = False
    may: Callable[[str], bool] = lambda _: False
    """Whether the caller meets a further rule, by its name."""
    header: Callable[[str], str | None] = lambda _: None
    """The text of one of its headers, by name."""
    described: Callable[[], Raw] = Raw
    """The OpenAPI document of every route that is served here."""

    def perform(
        self,
        use_case: Callable[Concatenate[UseCaseEnvironment, Caller, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """The result of a use case, done for the caller.

        In a dry run nothing is written (ADR-0053), nor anything left for after the answer.
        """
        if not self.dry_run:
            return use_case(self.env, self.caller, *args, **kwargs)
        with leaving_work(None):
            return use_case(self.env.in_dry_run(), self.caller, *args, **kwargs)

    def perform_judged(
        self,
        ensembles: Collection[str],
        use_case: Callable[Concatenate[UseCaseEnvironment, Caller, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> tuple[T, Impact]:
        """As `perform`, with what it newly breaks of these ensembles; see `with_impact`."""
        return self.perform(
            with_impact, ensembles, lambda env, caller: use_case(env, caller, *args, **kwargs)
        )

    def flag(self, name: str) -> bool:
        """A boolean query parameter.

        Raises:
            InvalidDescription: neither true nor false.
        """
        text = self.query.get(name, "false").lower()
        if text in {"true", "1", ""}:
            return True
        if text in {"false", "0"}:
            return False
        raise InvalidDescription(f"{name} is true or false, not {text!r}", path=name)

    @property
    def dry_run(self) -> bool:
        """Whether the request is a dry run."""
        return "dry_run" in self.query and self.flag("dry_run")

    def has(self, tag: str) -> bool:
        """Whether the client says that it has the body with this tag."""
        tags = if_none_match(self.header("If-None-Match"))
        return tag in tags or "*" in tags

    @property
    def accepts_gzip(self) -> bool:
        """Whether the client takes a gzipped body."""
        return accepts_gzip(self.header("Accept-Encoding"))

    def expected(self, generation: int | None) -> int | None:
        """The generation a change relies on, by `If-Match` or in the body; None: any (`*`).

        Raises:
            PreconditionRequired: neither is given.
        """
        if self.match_given:
            return self.matched
        if generation is None:
            raise PreconditionRequired('say which generation changes: If-Match: "7"')
        return generation

    def page(self, sort_keys: Collection[str] = (), *, most: int | None = None) -> Page:
        """The requested page of a listing that may be sorted by these keys.

        It has as many items as it may have by default; `most` is another bound for these.

        Raises:
            InvalidDescription: `limit` is no positive number, or there is no such key.
        """
        most = most or self.env.limits.page
        text = self.query.get("limit", str(most))
        if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
            raise InvalidDescription(f"limit is a positive number, not {text!r}", path="limit")
        limit, marker = min(int(text[:9]), most), self.query.get("marker")
        return Page(limit=limit, marker=marker, order=self._order(sort_keys))

    def _order(self, sort_keys: Collection[str]) -> Order | None:
        key, way = self.query.get("sort_key"), self.query.get("sort_dir")
        if way not in {None, "asc", "desc"}:
            raise InvalidDescription(f"sort_dir is asc or desc, not {way!r}", path="sort_dir")
        if key is None:
            if way is not None:
                raise InvalidDescription("sort_dir needs a sort_key", path="sort_dir")
            return None
        if key not in sort_keys:
            hint = did_you_mean(key, sort_keys)
            known = ", ".join(sort_keys)
            raise InvalidDescription(
                f"sort_key is one of {known}, not {key!r}{hint}", path="sort_key"
            )
        return Order(key, descending=way == "desc")

    def made(
        self,
        body: Struct,
        *,
        generation: int | None = None,
        location: str | None = None,
    ) -> Reply:
        """The reply to a thing that was written, at this path of the API, or would be."""
        if self.dry_run:
            return Reply(body, status=200)
        at = None if location is None else f"{self.base}/{location}"
        return Reply(body, generation=generation, location=at)

    def link(self, rel: str, *path: str) -> Link:
        """A link to a resource of this API."""
        return Link(rel, "/".join((self.base, *path)))

    def next_links(self, path: str, ids: list[str], page: Page) -> list[Link]:
        """The link to the next page, if this one is full."""
        return [] if len(ids) < page.limit else [self.next_link(path, ids[-1], page)]

    def next_link(self, path: str, marker: str, page: Page) -> Link:
        """The link to the page after the item with this marker."""
        kept = {k: v for k, v in self.query.items() if k not in {"limit", "marker"}}
        kept |= {"limit": str(page.limit), "marker": marker}
        return Link("next", f"{self.base}/{path}?{urlencode(sorted(kept.items()))}")


@dataclass(frozen=True, slots=True)
class Reply:
    """A handler's reply: a struct, or nothing with 204."""

    body: Struct | Raw | None = None
    parts: Iterator[bytes] | None = None
    """Instead of `body`: its bytes, made one after the other as they are sent."""
    data: bytes | None = None
    """Instead of `body`: its bytes, that are there already, in this encoding."""
    encoding: str | None = None
    """None: plain."""
    tag: str | None = None
    """Names the body, whatever its encoding; becomes the ETag."""
    status: int | None = None
    """None: the route's own."""
    generation: int | None = None
    """Becomes the ETag."""
    location: str | None = None
