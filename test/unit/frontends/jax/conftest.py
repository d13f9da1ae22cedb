"""Fixtures that record the compilations of JAX."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that records of each later compilation whether its step was rewritten."""
    import jax

    seen: list[bool] = []
    compile = jax.stages.Lowered.compile

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append("optimization_barrier" in self.as_text())
        return compile(self, *args, **kwargs)

    monkeypatch.setattr(jax.stages.Lowered, "compile", counted)
    return seen
