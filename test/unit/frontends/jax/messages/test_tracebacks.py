"""Errors show the lines of the user and the message, and no frame of this package."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.messages import tracebacks
from recompute.frontends.jax.messages.tracebacks import shorten
from recompute.test.unit.frontends.jax.steps import batch, forward, jax, mlp, weights
from recompute.test.unit.test_layout import MAY_IMPORT


def lines_of(call: Callable[[], Any]) -> list[str]:
    """Return the traceback of the error that the call raises, by files."""
    with pytest.raises(Exception) as caught:
        call()
    error = caught.value
    assert error.__cause__ is None and (error.__suppress_context__ or error.__context__ is None)
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (forward(), {"strict": True}),
        (mlp().step, {"budget": "1KiB"}),
        (mlp().step, {"segments": "no such segment"}),
        (mlp().step, {"save": ["no such name"]}),
    ],
)
@pytest.mark.parametrize("method", ["__call__", "lower", "report"])
def test_refusals_show_only_user_lines(function: Any, options: Any, method: str) -> None:
    step = recompute.jax.jit(function, **options)
    assert set(lines_of(lambda: getattr(step, method)(weights(), batch()))) == {__file__}


def test_option_errors_show_only_user_lines() -> None:
    jit: Any = recompute.jax.jit
    for options in ({"budget": "8"}, {"budgett": "8GiB"}, {"copies": "many"}):
        assert set(lines_of(partial(jit, mlp().step, **options))) - {functools.__file__} == {__file__}
    explain: Any = recompute.jax.explain
    assert set(lines_of(lambda: explain(mlp().step, weights(), batch(), budget="8"))) == {__file__}
    assert set(lines_of(lambda: recompute.jax.jit(forward()).explain(weights(), batch()))) == {__file__}


def test_format_errors_show_only_user_lines() -> None:
    report = recompute.jax.jit(mlp().step).report(weights(), batch())
    assert set(lines_of(lambda: report.save("step.doc"))) == {__file__}


def test_model_errors_show_model_lines() -> None:
    """An error of the model shows the lines of the model."""

    def model(w: Any, x: Any) -> Any:
        raise KeyError("inside the model")

    assert lines_of(lambda: recompute.jax.jit(model)(weights(), batch()))[-1] == __file__


def test_all_frames_are_shown_on_request() -> None:
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    try:
        with pytest.raises(recompute.Refusal) as caught:
            recompute.jax.jit(forward(), strict=True)(weights(), batch())
        files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert any(file.endswith("module_steps.py") for file in files)
    finally:
        jax.config.update("jax_traceback_filtering", before)


def test_every_package_is_hidden() -> None:
    """The frames of every package of the compiler are hidden, including new packages."""
    hidden: Any = vars(tracebacks)["_OURS"]
    assert set(hidden) == MAY_IMPORT.keys() - {"tools"}


def test_internal_errors_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The frames of an internal error are kept, since a bug report needs them."""
    module: Any = import_module("recompute.frontends.jax.jitted")

    def defect(call: Any) -> Any:
        raise KeyError(call)

    monkeypatch.setattr(module, "key_of", defect)
    module.key_of.__code__ = module.key_of.__code__.replace(co_filename=module.__file__)
    with pytest.raises(KeyError) as caught:
        recompute.jax.jit(mlp().step).lower(weights(), batch())
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert module.__file__ in files
    shorten(KeyError("never raised"))


def test_saved_values_behind_barriers_keep_their_names() -> None:
    def loss(w: Any, x: Any) -> Any:
        for index, layer in enumerate(w):
            with recompute.jax.block(f"block{index}"):
                x = jax.lax.optimization_barrier(x + jax.numpy.tanh(jax.numpy.sin(x @ layer["up"])) @ layer["down"])
        return (x**2).mean()

    report = recompute.jax.jit(jax.value_and_grad(loss)).report(weights(), batch())
    assert report.kept and not any("barrier" in value.operation for value in report.kept)
    assert any(value.operation == "stablehlo.add" for value in report.kept)
