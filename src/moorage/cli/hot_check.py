"""`moorage hot check`: checks Heat templates offline."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.command import Command
from moorage.cli.files import find
from moorage.cli.output import FAILED, OK, Shown, stack, table
from moorage.cli.parser import Option, Repeated
from moorage.domain.errors import InvalidDescription
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from moorage.heat.compile import CompiledTemplate
    from moorage.heat.template_check import TemplateCheck

_SUFFIXES: Final = (".yaml", ".yml", ".template", ".json", ".hot")
_VERSION: Final = re.compile(
    r"""^[ \t{]*["']?(heat_template_version|(Heat|AWS)TemplateFormatVersion)["']?[ \t]*:""",
    re.MULTILINE,
)
"""What tells a template from other files."""
_BEGINNING: Final = 200_000
"""Characters of a file in which its version is looked for."""


class Check(Command):
    """Check Heat templates offline: what would be placed, and what is refused.

    Needs neither a server nor a token. Parameters without a value get an example that their
    constraints allow; -P and -e give values. Of a folder every template in it is checked, with the
    nested ones as templates of their own; environments count only where -e names them. Flavors,
    zones and levels are not known offline. The exit status is 1 if a template is refused.
    """

    examples = """
        moorage hot check shop-hot.yaml -e env.yaml
        moorage hot check templates/ -f csv
    """
    auth_required = False
    options = (
        Option("paths", metavar="PATH", nargs="+", help="a template, or a folder of templates"),
        Repeated("-e", "--environment", metavar="ENV", help="environment file; later ones win"),
        Repeated("-P", "--parameter", metavar="NAME=VALUE", help="a parameter's value"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.hot_files import parameters

        given = parameters(args.parameter)
        environments = [find(name) for name in args.environment]
        paths = [find(name) for name in args.paths]
        if len(paths) == 1 and not paths[0].is_dir():
            return _one(paths[0], _checked(paths[0], environments, given))
        within = paths[0] if len(paths) == 1 else Path()
        results = [
            (os.path.relpath(file, within), _checked(file, environments, _declared(file, given)))
            for path in paths
            for file in (_templates(path) if path.is_dir() else (path,))
        ]
        return _several(results)


def _templates(folder: Path) -> Iterator[Path]:
    """The templates in a folder and below, in the order of their paths."""
    for directory, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = Path(directory) / name
            if name.endswith(_SUFFIXES):
                with path.open(encoding="utf-8", errors="replace") as opened:
                    if _VERSION.search(opened.read(_BEGINNING)):
                        yield path


def _declared(path: Path, given: Mapping[str, str]) -> Mapping[str, str]:
    """Those of the values whose parameters a template has."""
    from moorage.client.hot_files import read_file
    from moorage.heat.template import read_template

    if not given:
        return given
    try:
        declared = read_template(read_file(path)).parameters
    except InvalidDescription:
        return {}
    return {name: value for name, value in given.items() if name in declared}


def _checked(path: Path, environments: list[Path], given: Mapping[str, str]) -> TemplateCheck:
    from moorage.client.hot_files import gather, read_file
    from moorage.heat.compile import Source
    from moorage.heat.template_check import Outcome, TemplateCheck, check_template

    try:
        text = read_file(path)
        gathered = gather(path, text, environments)
    except InvalidDescription as error:
        return TemplateCheck(Outcome.REFUSED, None, error)
    return check_template(
        Source(
            template=text,
            environment_files=gathered.environments,
            parameters=given,
            files=gathered.files,
            name=path.stem,
        )
    )


def _body(path: str, check: TemplateCheck) -> dict[str, Any]:
    compiled, error = check.compiled, check.error
    return {
        "template": path,
        "outcome": str(check.outcome),
        "servers": 0 if compiled is None else len(compiled.keys),
        "keys": {} if compiled is None else {str(name): key for name, key in compiled.keys.items()},
        "not_placed": []
        if compiled is None
        else [
            {"path": str(one.path), "type": one.type, "why": one.reason}
            for one in compiled.unplaced
        ],
        "notes": [] if compiled is None else list(compiled.notes),
        "examples": dict(check.examples),
        "error": None
        if error is None
        else {"message": error.message, "path": error.path, "line": error.line},
    }


def _one(path: Path, check: TemplateCheck) -> Shown:
    body = {"check": _body(str(path), check)}
    if check.compiled is None:
        return Shown(body, f"{path}: {check.outcome}: {_why(check)}", FAILED)
    compiled = check.compiled
    listed = ", ".join(f"{one.path} ({one.type})" for one in compiled.unplaced)
    lines = [
        *([f"not placed: {listed}"] if listed else []),
        *(f"note: {note}" for note in compiled.notes),
        *(f"example for {name}: {value}" for name, value in check.examples.items()),
    ]
    return Shown(
        body,
        stack(
            table(["member", "resource", "flavor"], _members(compiled)),
            "",
            *lines,
            *([""] if lines else []),
            _summary(compiled),
        ),
    )


def _members(compiled: CompiledTemplate) -> list[tuple[str, str, str]]:
    flavors = {role.name: role.flavor or "-" for role in compiled.description.roles}
    return [(str(name), key, flavors[name.role]) for name, key in compiled.keys.items()]


def _summary(compiled: CompiledTemplate) -> str:
    described = compiled.description
    if not compiled.keys:
        return "OK no servers"
    return (
        f"OK {counted(len(described.roles), 'role')}, {counted(len(compiled.keys), 'member')},"
        f" {counted(len(described.policies), 'policy', 'policies')}"
    )


def _several(results: list[tuple[str, TemplateCheck]]) -> Shown:
    totals = Counter(str(check.outcome) for _, check in results)
    rows = [(path, str(check.outcome), _servers(check), _why(check)) for path, check in results]
    said = ", ".join(f"{count} {outcome}" for outcome, count in sorted(totals.items()))
    body = {
        "checks": [_body(path, check) for path, check in results],
        "totals": dict(sorted(totals.items())),
    }
    failed = any(check.compiled is None for _, check in results)
    return Shown(
        body,
        stack(
            table(["template", "outcome", "#servers", "reason"], rows),
            "",
            f"{counted(len(results), 'template')}: {said}" if results else "no templates",
        ),
        FAILED if failed else OK,
    )


def _servers(check: TemplateCheck) -> object:
    return "-" if check.compiled is None else len(check.compiled.keys)


def _why(check: TemplateCheck) -> str:
    error = check.error
    if error is None:
        return ""
    place = ", ".join(filter(None, (f"line {error.line}" if error.line else "", error.path or "")))
    return f"{place}: {error.message}" if place else error.message
