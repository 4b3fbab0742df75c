"""The page on flavors has every extra spec and image property that is known."""

import re
from pathlib import Path

from moorage.domain.nova import extra_specs, image_properties

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "flavors.md"


def test_every_known_key_is_on_the_page() -> None:
    quoted = re.findall(r"`([^`\n]+)`", PAGE.read_text(encoding="utf-8"))
    forms = [re.compile(one) for one in quoted if re.fullmatch(r"[\w:().|]+", one)]
    known = {*extra_specs.DECIDING, *extra_specs.WITHOUT_EFFECT, *image_properties.DECIDING}
    missing = sorted(key for key in known if not any(one.fullmatch(key) for one in forms))
    assert not missing
