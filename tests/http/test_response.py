"""A body in several parts is the body."""

import tracemalloc

import pytest

from moorage.http.transport.body_parts import BodyParts, packed


@pytest.mark.parametrize(
    "sizes", [[], [0], [5], [1, 2, 3], [900_000, 300_000, 10, 0, 7], [10] * 200_000]
)
def test_a_body_in_parts_is_sent_whole(sizes: list[int]) -> None:
    parts = [bytes([number % 251]) * size for number, size in enumerate(sizes)]
    assert b"".join(packed(parts)) == b"".join(parts)
    assert len(list(packed(parts))) <= 1 + sum(sizes) // 100_000


def test_long_parts_are_sent_as_they_are() -> None:
    long = bytes(400_000)
    first, *rest = packed([b"[", long, b",", long, long, memoryview(long), b"]"])
    assert first == b"["
    assert [one for one in rest if one is long] == [long] * 3
    assert b"".join(rest) == long + b"," + 3 * long + b"]"


def test_texts_of_a_large_body_are_shared_until_they_are_sent() -> None:
    texts = [bytes(1000) for _ in range(5000)]
    tracemalloc.start()
    try:
        parts = packed(texts)
        first = next(iter(parts))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(parts, BodyParts)
    assert most < 500_000
    assert parts.size == 5_000_000 - len(first)
