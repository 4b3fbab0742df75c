"""Paths in names of roles: many names at once mean what each means by itself."""

import random

from moorage.domain.role_paths import PathTree, is_within

STEPS = ["a", "b", "0", "1"]


def test_a_tree_of_names_finds_what_each_name_means() -> None:
    dice = random.Random(0)

    def path() -> str:
        return "/".join(dice.choice(STEPS) for _ in range(dice.randint(1, 5)))

    found = 0
    for _ in range(2_000):
        names, role = {path() for _ in range(6)}, path()
        meant = {name for name in names if is_within(role, name)}
        assert PathTree.of(names).names_of(role) == meant, (role, names)
        found += len(meant)
    assert found


def test_a_role_deep_in_copies_takes_no_longer() -> None:
    """Each number may be left out of a name: there are 2^60 ways to say this one."""
    role = "a/" + "/".join("01" * 30) + "/b"
    assert PathTree.of(["a/b", role, "a/2"]).names_of(role) == {"a/b", role}
