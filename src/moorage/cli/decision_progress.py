"""The waiting line of a decision: `deciding  3s of 10s, cost 12, bound 10 (gap 17 %)`."""

from __future__ import annotations

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
def deciding(client: Moorage, ensemble_id: str | None) -> Iterator[None]:
    """`waiting` for a decision about an ensemble, with what its search has found so far.

    None: a dry run, whose search has no events, and of which nothing is left if it is interrupted.
    """
    if ensemble_id is None:
        with waiting("deciding"):
            yield
    else:
        goes_on = f"the service continues the request: see `moorage ensemble show {ensemble_id}`"
        with interruptible("deciding", goes_on, more=_Search(client.events, ensemble_id).newest):
            yield


@dataclass
class _Search:
    """Follows the search for one ensemble in the event feed."""

    events: EventCalls
    ensemble_id: str
    cursor: str | None = _FROM_NOW
    """None: the events cannot be read."""
    found: str = ""

    def newest(self) -> str:
        """What is known of the search; the first call only finds out where its events begin."""
        try:
            while self.cursor is not None:
                page = self.events.page(self.cursor, types=[PROGRESS], subject=self.ensemble_id)
                self.cursor = page.value.cursor
                for one in page.value.events:
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
