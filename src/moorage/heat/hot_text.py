"""Writes plain values as the text of a template."""

from __future__ import annotations

from typing import Any, Final

import yaml

_WIDTH: Final = 100
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def dump(document: dict[str, Any]) -> str:
    """The YAML text: keys in their order, multi-line texts as blocks."""
    return str(
        yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    )


class _Dumper(_DUMPER):  # type: ignore[misc] # the C dumper has no types
    """A safe dumper that writes multi-line texts as blocks, and no anchors."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - every value is written out
        return True


def _block(dumper: Any, text: str) -> Any:  # noqa: ANN401 - as above
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _block)
