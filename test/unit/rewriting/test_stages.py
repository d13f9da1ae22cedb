"""The stages of a rewrite work on a copy of the module."""

from __future__ import annotations

import pytest

from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import DEFAULT_OPTIONS
from recompute.rewriting.stages import run_stages
from recompute.test.examples import original


@pytest.mark.parametrize("name", ["mlp.small.mlir", "unet.small.mlir"])
def test_stages_do_not_modify_the_module(name: str) -> None:
    module = original(name).clone()
    before = print_module(module)
    result, _ = run_stages(module, DEFAULT_OPTIONS)
    assert result.module is not None and result.outcome.copies
    assert print_module(module) == before
