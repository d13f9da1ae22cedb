"""The types of the keywords of `recompute.jax.jit`: the fields of its options, and the keywords of `jax.jit`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypedDict

from ....options.keywords import CommonKeywords, SelectionKeywords


class CompilationKeywords(TypedDict, total=False):
    """The options whose types differ from their types in `recompute.rewrite`, because that function compiles no
    step."""

    policy: str | Callable[..., Any]
    measure: bool | str
    search: int


class JaxJitKeywords(TypedDict, total=False):
    """The keywords of `jax.jit`."""

    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Iterable[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Iterable[str] | None
    keep_unused: bool
    device: Any
    backend: str | None
    inline: bool
    compiler_options: dict[str, Any] | None


class JitKeywords(SelectionKeywords, CommonKeywords, CompilationKeywords, JaxJitKeywords, total=False):
    """The keywords of `recompute.jax.jit`."""


OWN_KEYWORDS = frozenset(
    name for keywords in (SelectionKeywords, CommonKeywords, CompilationKeywords) for name in keywords.__annotations__
)
"""The keywords that `jax.jit` lacks."""
