"""Labels are stable in one ensemble, useless in another, and tell domains apart."""

from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.topology import Level
from moorage.usecases.shared.host_labels import ALPHABET, label

RACK, HOST = Level("location", "rack"), Level("location", "host")


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_label_is_short_and_stable(salt: str, name: str) -> None:
    made = label(salt, RACK, name)
    assert made == label(salt, RACK, name)
    assert made.startswith("r-")
    assert set(made[2:]) <= set(ALPHABET)
    assert len(made) == 7


def test_salts_levels_and_trees_make_other_labels() -> None:
    one = label("salt", RACK, "r1")
    assert one != label("pepper", RACK, "r1")
    assert one[2:] != label("salt", HOST, "r1")[2:]
    assert one != label("salt", Level("power", "rack"), "r1")


def test_sixty_racks_of_many_ensembles_do_not_collide() -> None:
    for ensemble in range(50):
        labels = {label(f"salt-{ensemble}", RACK, f"r{i}") for i in range(60)}
        assert len(labels) == 60
