"""The choice among results that a compiler measured."""

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from recompute.search.choice.measured import choose_by_measurement


@dataclass(frozen=True)
class SizedResult:
    module: ModuleOp
    extra_flops: int


def choice_of(sizes_and_flops: list[tuple[int, int]]) -> tuple[int | None, str]:
    """Choose among results with these bytes and FLOPs; the unchanged module has 1000 bytes."""
    results = [(f"r{n}", SizedResult(ModuleOp([]), flops)) for n, (_, flops) in enumerate(sizes_and_flops)]
    original = ModuleOp([])
    sizes = {id(result.module): size for (_, result), (size, _) in zip(results, sizes_and_flops, strict=True)}
    choice = choose_by_measurement(original, results, lambda module: sizes.get(id(module), 1000), 1)
    indices = [n for n, (_, result) in enumerate(results) if result is choice.smallest]
    return next(iter(indices), None), choice.summary


def test_fewest_bytes_win() -> None:
    assert choice_of([(500, 1), (400, 9)]) == (1, "measured: unchanged: 1000 bytes; r0: 500 bytes; r1: 400 bytes")


def test_fewer_flops_win_between_equal_sizes_then_the_first() -> None:
    assert choice_of([(400, 9), (400, 1), (400, 1)])[0] == 1


def test_result_that_saves_too_little_is_not_chosen() -> None:
    assert choice_of([(999, 1)])[0] is None
