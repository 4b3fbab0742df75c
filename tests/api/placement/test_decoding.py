"""Bodies are decoded quickly, and as Python's own decoder would."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.placement.validation import decoded
from moorage.domain.errors import InvalidDescription

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(values, st.booleans())
def test_what_is_json_is_what_python_finds(value: Any, ascii_only: bool) -> None:  # noqa: FBT001 - hypothesis
    raw = json.dumps(value, ensure_ascii=ascii_only, allow_nan=False).encode()
    assert repr(decoded(raw)) == repr(json.loads(raw))


@given(st.binary(max_size=40) | st.text('[]{}",:0123456789.eE+-truefalsn\\ud8', max_size=20))
def test_what_is_not_is_malformed(text: bytes | str) -> None:
    raw = text if isinstance(text, bytes) else text.encode()
    try:
        found = decoded(raw)
    except InvalidDescription:
        return
    assert repr(found) == repr(json.loads(raw.decode()))


@pytest.mark.parametrize("depth", range(940, 1010, 2))
def test_however_deep_it_is_found_or_malformed(depth: int) -> None:
    raw = b"[" * depth + rb'"\u0041"' + b"]" * depth
    try:
        decoded(raw)
    except InvalidDescription as error:
        assert "Malformed JSON" in error.message  # noqa: PT017 - either is right
