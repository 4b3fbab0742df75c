"""What an HTTP worker says of itself in the memory that all processes share."""

from moorage.http.process_status import Column, WorkerStatus, alone
from moorage.http.worker_process import SharedStatus


def test_counts_go_to_the_row_of_the_worker() -> None:
    row = alone()
    status = SharedStatus(WorkerStatus(row))
    status.beat()
    status.set_accepting(accepts=True)
    status.set_connections(3)
    status.set_unsent(5)
    status.set_arriving(7)
    status.reader_ended()
    status.body_refused()
    assert [row[column] for column in Column] == [1, 1, 3, 5, 7, 1, 1, 0, 0, 0]
    status.set_accepting(accepts=False)
    assert row[Column.ACCEPTS] == 0


def test_the_lead_is_over_the_worker_with_the_fewest_that_takes_connections() -> None:
    own, other, leaving = alone(), alone(), alone()
    status = SharedStatus(WorkerStatus(own, [own, other, leaving]))
    other[Column.ACCEPTS], other[Column.CONNECTIONS] = 1, 2
    assert status.excess_connections(5) == 0, "the others are looked at with each sign of life"
    status.beat()
    assert status.excess_connections(5) == 3
    other[Column.CONNECTIONS] = 9
    assert status.excess_connections(5) < 0
    other[Column.ACCEPTS] = 0
    assert status.excess_connections(5) == 0
