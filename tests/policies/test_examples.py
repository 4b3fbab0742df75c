"""Every policy's examples, as printed in the reference, are true."""

import pytest

from moorage.policies import discover
from moorage.policies.contract import Example
from moorage.testing.policy_checks import check_example, check_examples

EXAMPLES = [
    pytest.param(type_, example, id=f"{type_}: {example.title}")
    for type_, policy in discover().items()
    for example in policy.examples
]


@pytest.mark.parametrize(("type_", "example"), EXAMPLES)
def test_an_example_is_as_good_as_it_says(type_: str, example: Example) -> None:
    check_example(type_, example)


@pytest.mark.parametrize("type_", list(discover()))
def test_a_policy_shows_a_good_and_a_bad_placement(type_: str) -> None:
    check_examples(discover()[type_])
