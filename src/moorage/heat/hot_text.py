"""A template as plain values and back to text, with times and keys staying what they were."""

from __future__ import annotations

from typing import Any, Final

import yaml

_WIDTH: Final = 100
_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def load(text: str) -> dict[str, Any]:
    """A template that `marked` has read, and so bounded, as plain values."""
    document: dict[str, Any] = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    return document


def dump(document: dict[str, Any]) -> str:
    """The text: keys in their order, texts of several lines as blocks."""
    return str(
        yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    )


class _Loader(_BASE):  # type: ignore[misc] # the C loader has no types
    """A safe loader in which times and keys stay text, as `marked` reads them.

    A resource or parameter may well be called `on` or `1`.
    """

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:  # noqa: ANN401, FBT001, FBT002 - the loader's own signature
        self.flatten_mapping(node)
        return {
            self.construct_scalar(key): self.construct_object(value, deep=deep)
            for key, value in node.value
        }


class _Dumper(_DUMPER):  # type: ignore[misc] # the C dumper has no types
    """A safe dumper that writes texts of several lines as blocks, and no anchors."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - every value is written out
        return True


def _text(loader: Any, node: Any) -> object:  # noqa: ANN401 - as above
    return loader.construct_scalar(node)


def _block(dumper: Any, text: str) -> Any:  # noqa: ANN401 - as above
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _text)
_Loader.add_constructor("tag:yaml.org,2002:value", _text)
_Dumper.add_representer(str, _block)
