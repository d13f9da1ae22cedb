"""Equality of the tools' output for the small examples with the hashes in `outputs.json`."""

from __future__ import annotations

import json

import pytest

from .outputs import FILE, environment, of_example, of_jax

EXPECTED = json.loads(FILE.read_text())
QUICK = ("chain", "paddle_fc")

pytestmark = pytest.mark.skipif(
    environment() != EXPECTED["environment"], reason="outputs.json was written with other versions of packages"
)


@pytest.mark.parametrize("name", QUICK)
def test_outputs_of_each_example_are_unchanged(name: str) -> None:
    expected = {key: value for key, value in EXPECTED["outputs"][name].items() if not key.startswith("jax")}
    assert of_example(name) == expected


def test_outputs_of_jax_jit_are_unchanged() -> None:
    expected = {key: value for key, value in EXPECTED["outputs"]["chain"].items() if key.startswith("jax")}
    assert of_jax("chain") == expected
