"""The tool that measures the tests by mutation finds conditions, also those that have moved."""

import ast
from pathlib import Path

import pytest
from tests.mutants.conditions import NotFoundThere, conditions, mutated
from tests.mutants.draw import Home, Mutant, areas, equivalent, read
from tests.mutants.locate import apply, found_at

SOURCE = '''
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from here import There

_LIVE = or_(state == "allocated", end_at > now)


class Booking:
    """Text."""

    end: int | None = 0

    def live(self, now: int) -> bool:
        """Whether it lives."""
        assert now > 0
        if now >= self.end:
            return False
        return self.open or (
            self.start < now
        )


def both(a, b):
    if a < b:
        return None
    return a < b and f"{a < b}"
'''


def test_conditions_are_found_with_the_function_that_they_are_in() -> None:
    found = {(one.function, one.text, one.ordinal): one.mutations for one in conditions(SOURCE)}

    assert found == {
        ("_LIVE", "or_(state == 'allocated', end_at > now)", 0): (
            "and_(state == 'allocated', end_at > now)",
            "or_(end_at > now)",
            "or_(state == 'allocated')",
        ),
        ("_LIVE", "state == 'allocated'", 0): ("state != 'allocated'",),
        ("_LIVE", "end_at > now", 0): ("end_at >= now",),
        ("Booking.live", "now >= self.end", 0): ("False", "now > self.end"),
        ("Booking.live", "return False", 0): ("return True",),
        ("Booking.live", "self.open or self.start < now", 0): (
            "self.open and self.start < now",
            "self.start < now",
            "self.open",
        ),
        ("Booking.live", "self.start < now", 0): ("self.start <= now",),
        ("both", "a < b", 0): ("False", "a <= b"),
        ("both", "a < b", 1): ("a <= b",),
        ("both", "a < b and f'{a < b}'", 0): ("a < b or f'{a < b}'", "f'{a < b}'", "a < b"),
    }


def test_every_mutation_changes_its_condition_and_nothing_else() -> None:
    for one in conditions(SOURCE):
        for mutation in one.mutations:
            text = mutated(SOURCE, one.function, one.text, one.ordinal, mutation)
            written = mutation if mutation.startswith("return") else f"({mutation})"
            before, _, after = text.partition(written)
            ast.parse(text)
            assert SOURCE.startswith(before)
            assert SOURCE.endswith(after)
            assert len(before) + len(after) < len(SOURCE)


def test_of_equal_texts_in_a_function_the_one_of_its_number_is_changed() -> None:
    text = mutated(SOURCE, "both", "a < b", 1, "a <= b")

    assert "if a < b:" in text
    assert 'return (a <= b) and f"{a < b}"' in text


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(NotFoundThere, match=r"both has no condition 'a < c'"):
        mutated(SOURCE, "both", "a < c", 0, "a <= c")


def _tree(folder: Path, **sources: str) -> Path:
    for name, source in sources.items():
        file = folder / "src" / "moorage" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    return folder


def _mutant(home: Home, new_home: Home | None = None) -> Mutant:
    return Mutant("area-01", "area", home, new_home)


HOME = Home("src/moorage/old.py", "both", "a < b", 1, "a <= b")


def test_a_condition_that_moved_with_its_function_is_found_in_its_new_file(tmp_path: Path) -> None:
    tree = _tree(tmp_path, old="x = 1\n", new=SOURCE)

    (home,) = found_at(tree, _mutant(HOME))

    assert home == Home("src/moorage/new.py", "both", "a < b", 1, "a <= b")
    apply(tree, home)
    assert "(a <= b) and" in (tree / home.file).read_text()


def test_a_condition_whose_function_has_another_name_is_found_by_its_text(tmp_path: Path) -> None:
    home = Home("src/moorage/old.py", "Old.lives", "now >= self.end", 0, "False")

    assert found_at(_tree(tmp_path, new=SOURCE), _mutant(home)) == [
        Home("src/moorage/new.py", "Booking.live", "now >= self.end", 0, "False")
    ]


def test_a_condition_that_may_be_in_several_places_is_found_in_all_of_them(tmp_path: Path) -> None:
    found = found_at(_tree(tmp_path, new=SOURCE, other=SOURCE), _mutant(HOME))

    assert {one.file for one in found} == {"src/moorage/new.py", "src/moorage/other.py"}


def test_a_new_home_that_is_written_down_comes_first(tmp_path: Path) -> None:
    tree = _tree(tmp_path, old=SOURCE, new=SOURCE)
    new = Home("src/moorage/new.py", "both", "a < b", 0, "a <= b")

    assert found_at(tree, _mutant(HOME, new)) == [new]


def test_the_stored_draw_is_ten_of_each_area_and_none_that_is_equivalent() -> None:
    drawn, wanted = read(), areas()

    assert {
        one: sum(each.area == one for each in drawn) for one in wanted["areas"]
    } == dict.fromkeys(wanted["areas"], wanted["per_area"])
    assert len({one.home for one in drawn}) == len(drawn)
    assert not equivalent().keys() & {one.id for one in drawn}
