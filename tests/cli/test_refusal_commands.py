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
    refusal_commands.to_see_lease(AWKWARD),
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_command_can_be_copied(sentence: str) -> None:
    form = re.fullmatch(r"; to [a-z ]+: moorage (.+)", sentence)
    assert form is not None, sentence
    program = Program()
    made, _, arguments = program.command_manager.find_command(shlex.split(form[1]))
    parsed = made(program, None).get_parser("moorage").parse_args(arguments)
    assert AWKWARD in vars(parsed).values()
