"""Projects share the time of judgements, whatever one judgement of theirs takes."""

from collections.abc import Collection, Iterator, Mapping

from hypothesis import given
from hypothesis import strategies as st

from moorage.usecases.compliance.judgement_queue import BATCH_SECONDS, JudgementQueue

LARGE = 1.4


def of_names(ensembles: Collection[str]) -> Mapping[str, str]:
    """`h-1` is an ensemble of project h."""
    return {one: one.partition("-")[0] for one in ensembles}


def ensembles(project: str, number: int) -> list[str]:
    return [f"{project}-{n}" for n in range(number)]


def judged(queue: JudgementQueue, due: list[str], cost: Mapping[str, float]) -> Iterator[list[str]]:
    """The batches in which all that is due is judged, by what a judgement of a project takes."""
    while due:
        batch, took = [], 0.0
        for one in list(queue.first(due, 100)):
            if took > BATCH_SECONDS:
                break
            seconds = cost[of_names([one])[one]]
            queue.note(one, seconds)
            batch.append(one)
            took += seconds
        due = [one for one in due if one not in batch]
        yield batch


def test_projects_take_turns_and_each_keeps_its_order() -> None:
    queue = JudgementQueue(of_names)
    due = [*ensembles("a", 3), *ensembles("b", 2), "c-0"]
    assert list(queue.first(due, 100)) == ["a-0", "b-0", "c-0", "a-1", "b-1", "a-2"]
    assert list(queue.first(due, 2)) == ["a-0", "b-0"]
    assert list(queue.first([], 2)) == []


def test_large_ensembles_of_a_project_let_all_of_others_pass() -> None:
    queue = JudgementQueue(of_names)
    due = [*ensembles("large", 5), *ensembles("small", 300)]
    batches = list(judged(queue, due, {"large": LARGE, "small": 0.001}))
    first = next(at for at, batch in enumerate(batches) if "small-299" in batch)
    assert sum(one.startswith("large") for batch in batches[: first + 1] for one in batch) == 1
    assert all(len(batch) == 1 for batch in batches[first + 1 :])
    assert {one for batch in batches for one in batch} == set(due)


def test_one_that_is_written_again_and_again_waits_for_the_others() -> None:
    queue = JudgementQueue(of_names)
    assert list(queue.first(["large-0"], 100)) == ["large-0"]
    queue.note("large-0", LARGE)
    small = ensembles("small", 50)
    batch = list(queue.first(["large-0", *small], 100))
    assert batch == small, "nor does it keep their commit waiting"


def test_who_was_idle_has_saved_nothing_up() -> None:
    queue = JudgementQueue(of_names)
    for _ in range(100):
        list(queue.first(["busy-0"], 1))
        queue.note("busy-0", LARGE)
    due = [*ensembles("idle", 10), *ensembles("busy", 10)]
    order = [one for batch in judged(queue, due, {"busy": 0.2, "idle": 0.2}) for one in batch]
    assert LARGE / 0.2 - 1 <= order.index("busy-0") <= LARGE / 0.2 + 2
    assert 3 <= sum(one.startswith("busy") for one in order[:14]) <= 4


def test_projects_of_deleted_ensembles_are_forgotten() -> None:
    asked: list[str] = []

    def noted(some: Collection[str]) -> Mapping[str, str]:
        asked.extend(some)
        return of_names(some)

    queue = JudgementQueue(noted)
    list(queue.first(["a-0", "b-0"], 100))
    queue.keep(["a-0"])
    list(queue.first(["a-0", "b-0"], 100))
    assert asked == ["a-0", "b-0", "b-0"]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 30), min_size=2),
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0.001, 2.0)),
)
def test_nobody_waits_for_more_than_a_share_and_a_judgement_of_each(
    numbers: Mapping[str, int], seconds: Mapping[str, float]
) -> None:
    """While a project has something due, no other is ahead by more than its own last judgement."""
    cost = {project: seconds.get(project, 0.001) for project in numbers}
    due = [one for project, number in numbers.items() for one in ensembles(project, number)]
    used = dict.fromkeys(numbers, 0.0)
    left = dict(numbers)
    for batch in judged(JudgementQueue(of_names), due, cost):
        for one in batch:
            project = of_names([one])[one]
            used[project] += cost[project]
            left[project] -= 1
        least = min((used[one] for one, number in left.items() if number), default=None)
        for project, number in left.items():
            if number and least is not None:
                assert used[project] <= least + 2 * BATCH_SECONDS + 2 * max(cost.values())
