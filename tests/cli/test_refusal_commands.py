"""Commands that refusals name are commands of the program."""

import re
import shlex

import pytest

from moorage.cli.program import Program
from moorage.domain import refusal_commands

AWKWARD = "shop's front"
SENTENCES = [
    refusal_commands.to_place(AWKWARD),
    refusal_commands.to_boot(AWKWARD),
    refusal_commands.to_see_places(AWKWARD),
    refusal_commands.to_see_claims(AWKWARD),
    refusal_commands.to_see_claim(AWKWARD),
    refusal_commands.to_see_slices(AWKWARD),
    refusal_commands.to_see_lease(AWKWARD),
    refusal_commands.to_accept_share(AWKWARD),
    refusal_commands.to_offer_count(AWKWARD, "web"),
    refusal_commands.to_end_slices(AWKWARD),
    refusal_commands.to_add_server(AWKWARD, "web", "8d0a7a8e-5ad0-4c5e-9b0e-4f3d6a1d2c3b"),
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_command_can_be_copied(sentence: str) -> None:
    assert AWKWARD in arguments_of(sentence).values()


@pytest.mark.parametrize("kind", ["ensemble", "lease"])
def test_a_projects_own_are_listed(kind: str) -> None:
    assert arguments_of(refusal_commands.to_see_own(kind))


def test_a_role_is_offered_before_it_is_placed() -> None:
    assert arguments_of(refusal_commands.to_offer_first())["describe_only"]


def arguments_of(sentence: str) -> dict[str, object]:
    """What the named command is given."""
    form = re.fullmatch(r"; to [a-z ]+: moorage (.+)", sentence)
    assert form is not None, sentence
    program = Program()
    made, _, arguments = program.command_manager.find_command(shlex.split(form[1]))
    return vars(made(program, None).get_parser("moorage").parse_args(arguments))
