"""Leading dimensions of shardings that are neither sharded nor open."""

from __future__ import annotations

import pytest

from recompute.dialects.sdy.sharding_text import with_free_dimensions, without_free_dimensions
from recompute.dialects.sdy.shardings import ShardingAttr


@pytest.mark.parametrize(
    ("text", "trailing", "count"),
    [
        ('@mesh, [{}, {}, {"x"}, {}]', '@mesh, [{"x"}, {}]', 2),
        ("@mesh, [{}, {}]", "@mesh, []", 2),
        ("@mesh, []", "@mesh, []", 0),
        ('@mesh, [{?}, {"x"}]', '@mesh, [{?}, {"x"}]', 0),
        ('@mesh, [{}p1, {"x"}]', '@mesh, [{}p1, {"x"}]', 0),
        ('@mesh, [{}], replicated={"y"}', '@mesh, [], replicated={"y"}', 1),
        ('mesh<["x"=2, "y"=2]>, [{}, {"x", "y"}]', 'mesh<["x"=2, "y"=2]>, [{"x", "y"}]', 1),
    ],
)
def test_free_dimensions_are_removed_and_added(text: str, trailing: str, count: int) -> None:
    assert without_free_dimensions(ShardingAttr(text)) == (ShardingAttr(trailing), count)
    assert with_free_dimensions(ShardingAttr(trailing), count) == ShardingAttr(text)
    assert with_free_dimensions(ShardingAttr(text), 0) == ShardingAttr(text)
