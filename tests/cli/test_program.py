"""The program itself: help, words it does not know, statuses, what it imports."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moorage.cli.commands import COMMANDS, NOUNS
from moorage.cli.program import LazyCommand, Program, named_command


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_summary_and_a_noun(name: str) -> None:
    assert LazyCommand(name, COMMANDS[name]).summary().endswith(".")
    assert name.split(maxsplit=1)[0] in NOUNS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, offline: Any) -> None:
    told = offline(*name.split(), "--help")
    assert told.status == 0
    late = LazyCommand(name, COMMANDS[name])
    command = late.load()
    assert " ".join(late.summary().split()) in " ".join(capture_help(command, name).split())


def capture_help(command: type, name: str) -> str:
    parser = command(Program(), None, name).get_parser(f"moorage {name}")
    return str(parser.format_help())


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_help_shows_every_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status = Program(stdout=sys.stdout).run(words)
    shown = capsys.readouterr().out
    assert status == 0
    for noun in NOUNS:
        assert f"\n  {noun}" in shown
    for name in COMMANDS:
        assert name.split()[-1] in shown


def test_help_imports_neither_network_nor_tables() -> None:
    code = (
        "import sys; from moorage.cli.main import main; main(['--help']);"
        "print(sorted({'httpx', 'rich', 'numpy', 'yaml', 'msgspec'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_a_call_of_the_service_imports_no_extras_of_the_network_library() -> None:
    code = (
        "import sys; from moorage.cli.main import main;"
        "sys.argv[1:] = ['--endpoint', 'http://127.0.0.1:1', 'lease', 'list']; main();"
        "print([one for one in ('httpx', 'click', 'h2') if sys.modules.get(one)])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "['httpx']"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ensmble", "list"], "no such command: ensmble list"),
        (["ensemble", "dance"], "moorage ensemble create"),
        (["ensemble"], "moorage ensemble create"),
        (["ensemble", "create"], "required"),
        (["ensemble", "list", "-f", "xml"], "invalid choice"),
        (["ensemble", "create", "x", "--hold", "10"], "argument --hold: not a duration such as"),
        (["ensemble", "create", "x", "--time-limit", "soon"], "argument --time-limit: not a dura"),
        (["decision", "renew", "x", "--hold", "1y"], "argument --hold: not a duration such as"),
        (["ensemble", "list", "--frob"], "unrecognized"),
        (["ensemble", "set", "x", "--member", "db4"], "NAME:FIELD=VALUE"),
        (["ensemble", "set", "x", "--dry-run"], "give --member, --policy"),
        (["leese", "list"], r"mean:\n  moorage lease list "),
        (["ensemble", "delete", "x", "#", "all"], "the shell took a comment for arguments, as zsh"),
        (["ensemble", "create", "--server", "x", "--count", "two"], "not a whole number: 'two'"),
        (["config", "show", "longest_hodl"], "no setting longest_hodl; did you mean longest_hold"),
        (["ensemble", "dlete"], r"mean:\n  moorage ensemble delete .*\n$"),
        (["help", "xyzz"], r"no such command: xyzz\nCommands begin with one of: ensemble, member,"),
        (["creat", "x"], r"mean:\n  moorage ensemble create"),
        (["capacity", "fit"], "give one of ENSEMBLE, --template and --flavor"),
        (["capacity", "fit", "--flavor", "m1", "--role", "web"], "--role: only with ENSEMBLE"),
        (["capacity", "fit", "--flavor", "m1", "--param", "n=1"], "--param: only with --template"),
        (["--nonsense"], "no such command|unrecognized"),
    ],
)
def test_misuse_is_status_2(words: list[str], said: str, offline: Any) -> None:
    import re

    result = offline(*words)
    assert result.status == 2
    assert re.search(said, result.out + result.err)


def test_a_noun_lists_its_verbs(offline: Any) -> None:
    told = offline("decision", "--help")
    assert told.status == 0
    assert len(told.out.splitlines()) == sum(name.startswith("decision ") for name in COMMANDS)


def test_commands_may_be_shortened(offline: Any) -> None:
    assert offline("pol", "li").out == offline("policy", "list").out


@pytest.mark.parametrize(
    ("typed", "meant", "rest"),
    [
        ("capacity window", "capacity window", ""),
        ("capacity window show x", "capacity window show", "x"),
        ("capacity windows --count 2", "capacity windows", "--count 2"),
        ("cap wind sh x", "capacity window show", "x"),
        ("capacity windo", "capacity", "windo"),
        ("lease show show", "lease show", "show"),
        ("replay list", "replay", "list"),
        ("--help", "", "--help"),
        ("nonsense show", "", "nonsense show"),
    ],
)
def test_a_whole_word_is_no_beginning_of_another(typed: str, meant: str, rest: str) -> None:
    assert named_command(typed.split()) == (meant, rest.split())


def test_help_is_a_verb_before_any_noun(offline: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["help", "ensemble", "create"], ["help", "ensemble"], ["help"]):
        told = offline(*words)
        asked = offline(*words[1:], "--help") if words[1:] else offline()
        assert told.status == 0
        assert (told.out, told.err) == (asked.out, asked.err)
    assert "usage: moorage ensemble create" in capsys.readouterr().out


def test_a_group_of_commands_lists_them(offline: Any) -> None:
    told = offline("capacity", "window", "--help")
    assert told.status == 0
    assert told.out.count("moorage capacity window ") == 4
    assert "capacity windows" not in told.out
    wrong = offline("capacity", "windo")
    assert wrong.status == 2
    assert "moorage capacity windows" in wrong.err
    assert "moorage capacity show" not in wrong.err


def test_nobody_there_is_one_line(offline: Any) -> None:
    offline.environment["MOORAGE_ENDPOINT"] = "http://127.0.0.1:9"
    told = offline("ensemble", "list")
    assert told.status == 1
    assert told.err == (
        "cannot reach Moorage at http://127.0.0.1:9: connection refused (is it running?)\n"
    )
    assert told.out == ""


def test_errors_are_json_where_json_is_asked_for(offline: Any) -> None:
    offline.environment["MOORAGE_ENDPOINT"] = "http://127.0.0.1:9"
    told = offline("ensemble", "list", "-f", "json")
    assert told.status == 1
    assert "cannot reach" in json.loads(told.out)["errors"][0]["detail"]


def test_debug_shows_where(offline: Any) -> None:
    offline.environment["MOORAGE_ENDPOINT"] = "http://127.0.0.1:9"
    assert "Traceback" not in offline("ensemble", "list").err
    assert "Traceback" in offline("--debug", "ensemble", "list").err


def test_a_cloud_nobody_knows_is_said(offline: Any) -> None:
    offline.environment["OS_CLOUD"] = "nowhere"
    told = offline("ensemble", "list")
    assert told.status == 1
    assert "OS_CLOUD=nowhere names no running simulation" in told.err


def test_the_version(offline: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert offline("--version").status == 0
    assert capsys.readouterr().out.startswith("moorage 0.")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ens", ["ensemble"]),
        ("ensemble s", ["set", "show", "shrink"]),
        ("ensemble show shop --m", ["--map"]),
        ("--endpoint http://h:1 decision r", ["release", "renew"]),
        ("--endpoint = http://h:1 decision r", ["release", "renew"]),
        ("--debug claim l", ["list"]),
        ("lease create --t", ["--template", "--time-limit", "--times"]),
        ("lease create --template upf --pa", ["--param"]),
        ("--end", ["--endpoint"]),
        ("replay x --f", ["--format"]),
        ("ensemble create ", []),  # nothing of ours: the shell completes files
        ("ensemble create -f sh", []),
        ("nonsense x", []),
        ("help ensemble s", ["set", "show", "shrink"]),
        ("ensemble set --hold ", []),
        ("complete ", ["bash", "zsh", "fish"]),
    ],
)
def test_bash_completes_with_nothing_but_bash(typed: str, offered: list[str], offline: Any) -> None:
    told = offline("complete", "bash")
    assert told.status == 0
    words = ["moorage", *typed.split(" ")]
    typing = (
        f"{told.out}\nCOMP_WORDS=({shlex.join(words)})\nCOMP_CWORD={len(words) - 1}\n"
        '_moorage; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    ran = subprocess.run(["bash", "-c", typing], capture_output=True, text=True, check=True)
    assert (ran.stdout.split(), ran.stderr) == (offered, "")


def test_bash_asks_the_service_for_names(tmp_path: Path, offline: Any) -> None:
    """What the script calls is the program that is being typed; here one that notes how."""
    program = tmp_path / "moorage"
    program.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" > "$0.asked"\nprintf "%s\\n" shop shed yard\n'
    )
    program.chmod(0o755)
    script = offline("complete", "bash").out
    for typed, kind in (
        ("ensemble show sh", "ensemble"),
        ("ensemble show --map sh", "ensemble"),
        ("lease create --flavor sh", "flavor"),
        ("ensemble set --hold 10m sh", "ensemble"),
        ("decision show --record sh", "decision"),
    ):
        words = [str(program), *typed.split(" ")]
        typing = (
            f"{script}\nCOMP_WORDS=({shlex.join(words)})\nCOMP_CWORD={len(words) - 1}\n"
            '_moorage; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        ran = subprocess.run(["bash", "-c", typing], capture_output=True, text=True, check=True)
        assert (ran.stdout.split(), ran.stderr) == (["shop", "shed"], "")
        asked = program.with_name("moorage.asked").read_text().split()
        assert asked == ["complete", "--names", kind]


def test_names_are_never_run_by_the_shell(tmp_path: Path, offline: Any) -> None:
    program, ran = tmp_path / "moorage", tmp_path / "ran"
    name = f"sh$(touch${{IFS}}{ran})"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' '{name}' shop\n")
    program.chmod(0o755)
    words = shlex.join([str(program), "ensemble", "show", "sh"])
    typing = f"{offline('complete', 'bash').out}\nCOMP_WORDS=({words})\nCOMP_CWORD=3\n_moorage"
    subprocess.run(["bash", "-c", typing], capture_output=True, text=True, check=True)
    assert not ran.exists()


def test_every_command_can_be_completed(offline: Any) -> None:
    script = offline("complete").out
    assert script == offline("complete", "bash").out
    assert "bashcompinit" in offline("complete", "zsh").out
    for name in COMMANDS:
        assert f'"{name}" | "{name} "*) offered="' in script
    fish = offline("complete", "fish").out
    for name in COMMANDS:
        assert f"case '{name}' '{name} *'" in fish
    assert offline("complete", "nu").status == 2


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ens", ["ensemble"]),
        ("ensemble s", ["set", "show", "shrink"]),
        ("ensemble show shop --m", ["--map"]),
        ("--endpoint http://h:1 decision r", ["release", "renew"]),
        ("lease create --t", ["--template", "--times", "--time-limit"]),
        ("ensemble create -f sh", ["shop.yaml"]),
        ("ensemble show sh", ["shop"]),
        ("lease create --flavor s", ["shop"]),
        ("ensemble set --hold 10m sh", ["shop"]),
        ("ensemble set --hold sh", ["shop.yaml"]),
        ("decision show --record sh", ["shop"]),
        ("help ensemble s", ["set", "show", "shrink"]),
        ("hel", ["help"]),
        ("complete ", ["bash", "fish", "zsh"]),
    ],
)
def test_fish_completes_words_files_and_names(
    typed: str, offered: list[str], offline: Any, tmp_path: Path
) -> None:
    (tmp_path / "shop.yaml").touch()
    program = tmp_path / "moorage"
    program.write_text("#!/bin/sh\nprintf '%s\\n' shop '$(touch ran)' yard\n")
    program.chmod(0o755)
    (tmp_path / "moorage.fish").write_text(offline("complete", "fish").out)
    words = ["fish", "--no-config", "-c", f"source moorage.fish; complete -C 'moorage {typed}'"]
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    ran = subprocess.run(
        words, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment
    )
    found = [line.partition("\t")[0] for line in ran.stdout.splitlines()]
    assert (found, ran.stderr) == (offered, "")
    assert not (tmp_path / "ran").exists()


def test_a_closed_pipe_is_no_error() -> None:
    piped = f"{sys.executable} -m moorage.cli.main policy list -f json | head -c 1"
    ran = subprocess.run(["bash", "-c", piped], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("{", "")


@pytest.mark.parametrize("command", ["serve", "config show"])
def test_without_the_extras_of_a_service_it_says_which_to_install(command: str) -> None:
    """As in a client's installation, whose packages do not include numpy and others."""
    absent = "numpy sqlalchemy oslo_config oslo_policy falcon httptools alembic ortools"
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({absent!r}.split()));"
        f" from moorage.cli.main import main; sys.exit(main({command!r}.split()))"
    )
    command_line = [sys.executable, "-c", program]
    done = subprocess.run(command_line, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    assert "needs the extras moorage[server,solver]" in done.stderr
    assert done.stderr.count("\n") == 1
