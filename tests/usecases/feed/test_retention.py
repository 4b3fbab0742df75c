"""Readers miss no event of their project, or are told so, whatever is deleted."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.changes import Changeset, PutEvent, TrimEvents
from moorage.domain.errors import EventsLost
from moorage.domain.events import BEGINNING, EVERYTHING, DerivedEvent, EventCursor
from moorage.domain.period import SECOND
from moorage.testing.service import NINE, Service

PROJECTS = ("p", "q", "r")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(PROJECTS), st.integers(1, 4)),
        st.tuples(st.just("read"), st.sampled_from((*PROJECTS, None)), st.integers(1, 5)),
        st.tuples(st.just("keep"), st.integers(1, 4), st.integers(1, 3)),
        st.tuples(st.just("forget"), st.integers(0, 3), st.integers(1, 3)),
    ),
    max_size=30,
)


class Reader:
    """A reader of one project, or of all, that goes on from the cursor of its last page."""

    def __init__(self, service: Service, project: str | None) -> None:
        self.service = service
        self.project = project
        self.cursor: EventCursor = service.store.event_log.newest()
        self.next = 0
        """The number of events of its own that it has read, or knows to be lost."""

    def read(self, written: Sequence[tuple[str, str]], limit: int) -> None:
        own = [one for project, one in written if self.project in {None, project}]
        log = self.service.store.event_log
        try:
            page = log.page(self.project, self.cursor, EVERYTHING, limit)
        except EventsLost as lost:
            self.cursor = EventCursor.parse(lost.oldest)
            page = log.page(self.project, self.cursor, EVERYTHING, limit)
            kept = self.kept(BEGINNING)
            lost_some = not set(own[self.next :]) <= set(kept)
            assert lost_some or self.service.store.event_log.oldest("nobody").position
            # Of all projects, what comes before the newest that is gone is passed over.
            self.next = len(own) - len(kept if self.project else self.kept(self.cursor))
        expected = own[self.next : self.next + limit]
        assert [one.subject for one in page.events] == expected
        self.next += len(expected)
        self.cursor = page.cursor

    def kept(self, after: EventCursor) -> list[str]:
        page = self.service.store.event_log.page(self.project, after, EVERYTHING, 999)
        return [one.subject for one in page.events]


@given(STEPS)
def test_a_reader_misses_nothing_or_is_told(steps: Sequence[tuple[str, object, int]]) -> None:
    service = Service()
    written: list[tuple[str, str]] = []
    readers = {project: Reader(service, project) for project in (*PROJECTS, None)}
    for verb, what, number in steps:
        match verb, what:
            case "write", str(project):
                service.clock.pass_by(SECOND)
                for _ in range(number):
                    subject = str(len(written))
                    event = PutEvent(DerivedEvent("lease.active", project, subject, 0, {}))
                    service.store.commit(Changeset((event,)))
                    written.append((project, subject))
            case "read", None | str():
                readers[what].read(written, number)
            case "keep", int(keep):
                service.store.commit(Changeset((TrimEvents(0, keep, number),)))
            case _, int(seconds):
                before = NINE + seconds * SECOND
                service.store.commit(Changeset((TrimEvents(before, 999, number),)))
    for one in readers.values():
        one.read(written, 999)
    service.close()
