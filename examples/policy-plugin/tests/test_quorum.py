"""The policy keeps the contract, alone and beside those of Moorage."""

from moorage.testing.policy_checks import check_policy
from moorage.testing.problems import random_level


def test_the_policy_keeps_the_contract() -> None:
    check_policy("quorum", lambda dice: {**random_level(dice), "lose": dice.randint(1, 2)})
