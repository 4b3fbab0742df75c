"""The picture on the first page shows what is decided now."""

from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_picture_is_the_one_that_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    drawn = import_module("gen.shop_picture").picture()
    again = "python docs/gen/shop_picture.py docs/assets/shop.svg"
    assert (DOCS / "assets" / "shop.svg").read_text(encoding="utf-8") == drawn, again
    assert "refused at db[1]: db-ha and pair leave no host" in drawn


def test_the_first_page_and_the_readme_begin_alike() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    first, _, _ = readme.partition("## Two commands")
    alike = first.replace("docs/", "").replace("(#example)", "(guide/start.md)").strip()
    assert (DOCS / "index.md").read_text(encoding="utf-8").startswith(alike)
