import pytest

from moorage.domain.errors import InvalidDescription
from moorage.domain.resources import MAX_AMOUNT, amounts, is_custom_name, total


@pytest.mark.parametrize(
    ("name", "custom"),
    [
        ("CUSTOM_GOLD", True),
        ("CUSTOM_", False),
        ("CUSTOM_gold", False),
        ("VCPU", False),
        ("CUSTOM_GÖLD", False),
        ("CUSTOM_" + "A" * 248, True),
        ("CUSTOM_" + "A" * 249, False),
        ("CUSTOM_A\n", False),
    ],
)
def test_custom_names(name: str, *, custom: bool) -> None:
    assert is_custom_name(name) is custom


@pytest.mark.parametrize(
    "wrong", [{"vcpu": 1}, {"VCPU": 0}, {"VCPU": -1}, {"VCPU": MAX_AMOUNT + 1}, {"VCPU": True}]
)
def test_a_wrong_amount_names_its_path(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidDescription) as refused:
        amounts(wrong, path="members[0].resources")
    assert str(refused.value.path).startswith("members[0].resources")


def test_amounts_are_frozen_sorted_and_summed() -> None:
    first = amounts({"VCPU": 2, "MEMORY_MB": 512})
    assert list(first) == ["MEMORY_MB", "VCPU"]
    assert total([first, amounts({"VCPU": 1, "DISK_GB": 5})]) == {
        "DISK_GB": 5,
        "MEMORY_MB": 512,
        "VCPU": 3,
    }
    with pytest.raises(TypeError):
        first["VCPU"] = 3  # type: ignore[index]  # the point: it cannot be changed
