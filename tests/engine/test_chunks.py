"""A sequence in chunks is the sequence, and shares what did not change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.engine.state.chunks import SIZE, Chunks

LENGTHS = st.one_of(st.integers(0, 5), st.integers(SIZE - 2, SIZE + 2), st.just(3 * SIZE))


@given(st.data(), LENGTHS, LENGTHS)
def test_a_changed_copy_is_as_of_a_list(data: st.DataObject, length: int, more: int) -> None:
    plain = list(range(length))
    chunks = Chunks(plain)
    assert (len(chunks), list(chunks)) == (length, plain)
    most = 4 if length + more else 0
    places = st.integers(0, max(length + more - 1, 0))
    changes = data.draw(st.dictionaries(places, st.integers(-9, -2), max_size=most))
    changed = chunks.replaced(changes, length=length + more, filler=-1)
    expected = [*plain, *[-1] * more]
    for index, item in changes.items():
        expected[index] = item
    assert list(changed) == expected
    assert [changed[index] for index in range(len(changed))] == expected
    assert list(chunks) == plain
    touched = {index // SIZE for index in changes}
    for number, part in enumerate(chunks.chunks):
        if number not in touched and len(part) == SIZE:
            assert changed.chunks[number] is part


@pytest.mark.parametrize("index", [-1, 3])
def test_there_is_nothing_outside(index: int) -> None:
    with pytest.raises(IndexError):
        Chunks("abc")[index]
