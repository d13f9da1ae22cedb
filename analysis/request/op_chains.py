"""Patterns for chains of operations whose results are saved, as in Paddle's `refined_ops_patterns`.

    "main:stablehlo.dot_general"                                    every dot product is saved
    "main:stablehlo.dot_general; num:1"                             only the first dot product of each segment is saved
    "pre:stablehlo.dot_general; main:stablehlo.add; suf:stablehlo.tanh"  an addition between a product and a tanh

`pre`, `main` and `suf` list names of operations, separated by `>`. Each operation of a chain reads a result of the
preceding operation. The results of the operations that `main` matches are saved. `num` limits the number of chains per
segment; -1, the default, means all chains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from xdsl.ir import Operation

from ...options.selection import BadSelection
from ...support.operations import name_of


class BadChain(BadSelection):
    """Raised for a pattern that cannot be parsed."""

    def __init__(self, text: str, why: str):
        super().__init__(
            f"exclude pattern '{text}': {why}; expected names of operations whose results are saved, such as "
            "'main:stablehlo.dot_general' or, for a chain, 'pre:a>b; main:c; suf:d; num:1'; to give names of values, "
            "use the option save"
        )


@dataclass(frozen=True)
class Chain:
    """A parsed pattern. Each name may be a shell-style pattern.

    `num`: the maximum number of chains per segment; -1 for all.
    """

    pre: tuple[str, ...]
    main: tuple[str, ...]
    suf: tuple[str, ...]
    num: int = -1

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.pre, *self.main, *self.suf)


def parse_chain(text: str) -> Chain:
    """Parse one pattern.

    Raises:
        BadChain: The pattern is malformed.
    """
    parts = dict[str, str]()
    for part in filter(None, (part.strip() for part in text.split(";"))):
        key, colon, value = (piece.strip() for piece in part.partition(":"))
        if not colon or key not in ("pre", "main", "suf", "num"):
            raise BadChain(text, f"'{part}' does not begin with one of the keys pre:, main:, suf: and num:")
        if key in parts:
            raise BadChain(text, f"'{key}:' is given twice")
        parts[key] = value
    pre, main, suf = (_names(parts.get(key, "")) for key in ("pre", "main", "suf"))
    if not main:
        raise BadChain(text, "the part 'main:', which names the saved operations, is missing")
    return Chain(pre, main, suf, _number(text, parts.get("num", "-1")))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(">") if (name := part.strip()))


def _number(text: str, number: str) -> int:
    try:
        count = int(number)
    except ValueError:
        count = -2
    if count < -1:
        raise BadChain(text, f"num must be the number of chains, or -1 for all chains, not '{number}'")
    return count


def operations_saved_by(chain: Chain, segment: Sequence[Operation]) -> set[Operation]:
    """Return the operations of the segment that the pattern saves.

    Matches are taken in program order and do not overlap.
    """
    inside = set(segment)
    saved = set[Operation]()
    used = set[Operation]()
    matched_chains = 0
    for start in segment:
        if 0 <= chain.num <= matched_chains:
            break
        match = next((m for m in _matches(start, chain.names, inside) if not used.intersection(m)), None)
        if match is not None:
            used.update(match)
            saved.update(match[len(chain.pre) : len(chain.pre) + len(chain.main)])
            matched_chains += 1
    return saved


def _matches(op: Operation, names: Sequence[str], inside: Collection[Operation]) -> Iterator[tuple[Operation, ...]]:
    """Yield the matching chains within the segment that begin with `op`."""
    if op not in inside or not fnmatchcase(name_of(op), names[0]):
        return
    if len(names) == 1:
        yield (op,)
        return
    for reader in dict.fromkeys(use.operation for result in op.results for use in result.uses):
        yield from ((op, *chain) for chain in _matches(reader, names[1:], inside))
