"""The waiting line of a decision: `deciding  3s of 10s, cost 12, bound 10 (gap 17 %)`."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.progress import interruptible, waiting
from moorage.domain.errors import MoorageError
from moorage.domain.events import PROGRESS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.client.events import EventCalls
    from moorage.client.moorage import Moorage

_FROM_NOW: Final = "now"


@contextmanager
def deciding(client: Moorage, ensemble: str | None, *, new: bool = False) -> Iterator[None]:
    """`waiting` for a decision about an ensemble, with what its search has found so far.

    Args:
        client: the service that decides.
        ensemble: the ensemble's id. None: a dry run, whose search has no events, and of which
            nothing is left if it is interrupted.
        new: the ensemble is created by this request, and is known by its name.
    """
    if ensemble is None:
        with waiting("deciding"):
            yield
    else:
        show = shlex.join(("moorage", "ensemble", "show", ensemble))
        goes_on = f"the service continues the request: see `{show}`"
        search = _Search(client.events, ensemble, new=new)
        with interruptible("deciding", goes_on, more=search.newest):
            yield


@dataclass
class _Search:
    """Follows the search for one ensemble in the event feed."""

    events: EventCalls
    ensemble: str
    new: bool
    """Whether `ensemble` is a name, which is unique in the project; else it is an id."""
    cursor: str | None = _FROM_NOW
    """None: the events cannot be read."""
    found: str = ""

    def newest(self) -> str:
        """What is known of the search; the first call only finds out where its events begin."""
        try:
            while self.cursor is not None:
                subjects = () if self.new else (self.ensemble,)
                page = self.events.page(self.cursor, types=[PROGRESS], subjects=subjects)
                self.cursor = page.value.cursor
                for one in page.value.events:
                    if self.new and one.body.get("name") != self.ensemble:
                        continue
                    limit = one.body["time_limit_ms"]
                    self.found = f" of {_seconds(limit)}, {state_of_search(one.body)}"
                if not page.value.more:
                    break
        except MoorageError:
            self.cursor = None  # the answer to the decision itself says what is wrong
        return self.found


def state_of_search(body: Mapping[str, Any]) -> str:
    """The body of an event: `cost 12, bound 10 (gap 17 %)`."""
    if body["value"] is None:
        return "no placement yet"
    return f"cost {body['value']}, bound {body['bound']} (gap {100 * body['gap']:.0f} %)"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.3g}s"
