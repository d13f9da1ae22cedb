"""Budgets for what segments save, all together: each at the least work, the last of the step first.

What a segment computes again may read what another one makes: that one keeps it then, and has so much less left. Where
it has not enough for it, nobody computes from it; segments are settled anew until all of them hold. Where that comes to
nothing, all are chosen in one integer program.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ..graph import Graph
from .least_work import keep_within, least_kept
from .piece import Piece, Rules, Said, piece_of
from .saved import bytes_of, saved_storages
from .together import keep_together


@dataclass(frozen=True)
class Segment:
    """Its operations, all of the forward pass, and the bytes that it may save; None for as few as can be."""

    operations: frozenset[int]
    most: int | None


@dataclass(frozen=True)
class Settled:
    """Storages of a segment that are kept and that are made again; bytes that it saves, with this and as it is."""

    kept: frozenset[int]
    again: frozenset[int]
    bytes: int
    plain: int
    most: int

    @property
    def is_nothing(self) -> bool:
        return not self.again


@dataclass(frozen=True)
class TooLittle:
    """A segment that cannot save so little. `least`: bytes that it saves in any case, `proved` whatever is done to the
    others; `holding`: the storages that these are, with the reason. `together`: that all segments keep their budgets at
    a time is proved to be impossible."""

    segment: str
    most: int
    least: int
    proved: bool
    holding: tuple[tuple[int, str], ...]
    together: bool = False


@dataclass
class Known:
    """What is found out on the way. `stays`: storages that turned out not to be made again, and why; `read`: those that
    are saved in any case, since others read them."""

    stays: dict[int, str] = field(default_factory=dict[int, str])
    again: frozenset[int] = frozenset()
    read: set[int] = field(default_factory=set[int])


def settled(
    graph: Graph, segments: Mapping[str, Segment], once: Collection[int], outputs: bool, found: Known
) -> Mapping[str, Settled] | TooLittle:
    """`once`: operations that may run once only. `outputs`: whether what leaves a segment may be made again too.
    `found`: what is known of storages."""
    named = {v for segment in segments.values() for op in segment.operations for v in graph.makes[op]}
    rules = Rules(frozenset(once), outputs, frozenset(named))
    order = sorted(segments, key=lambda name: -max(segments[name].operations))
    barred = set[int]()
    while True:
        done = _round(graph, segments, order, rules, found, barred)
        if isinstance(done, TooLittle) and not done.proved:
            return _together(graph, segments, rules, found, done)
        if done is not None:
            return done


def _round(
    graph: Graph, segments: Mapping[str, Segment], order: list[str], rules: Rules, found: Known, barred: set[int]
) -> Mapping[str, Settled] | TooLittle | None:
    """None where something is `barred` from now on: nobody computes from it."""
    read, done, pending = set(found.read), dict[str, Settled](), list(order)
    while pending:
        name = pending.pop(0)
        said = Said(found.stays, found.again, frozenset(barred), frozenset(read))
        piece = piece_of(graph, segments[name].operations, rules, said)
        one = _settle(graph, name, segments[name], piece)
        if isinstance(one, TooLittle):
            # What others read of it is too much, or it is so by itself.
            others = (read - found.read) & piece.sizes.keys() - barred
            if not others:
                return _alone(graph, name, segments[name], rules, found, one)
            barred |= others
            return None
        done[name] = one
        fresh = piece.reads_outside(one.again) - read
        read |= fresh
        pending += [
            other
            for other in order
            if other in done and other not in pending and _makes(graph, segments[other], fresh - done[other].kept)
        ]
    return done


def _makes(graph: Graph, segment: Segment, storages: Collection[int]) -> bool:
    return any(graph.maker[storage] in segment.operations for storage in storages)


def _settle(graph: Graph, name: str, segment: Segment, piece: Piece) -> Settled | TooLittle:
    least = least_kept(piece)
    most = _most(segment, piece)
    kept = keep_within(piece, most)
    if kept is None:
        return _too_little(name, most, piece, least, proved=False)
    plain = bytes_of(graph, saved_storages(graph, segment.operations))
    return Settled(kept, piece.again(kept), piece.bytes(kept), plain, most)


def _alone(
    graph: Graph, name: str, segment: Segment, rules: Rules, found: Known, one: TooLittle
) -> Mapping[str, Settled] | TooLittle:
    """Proved is what the segment saves by itself, with what may not be copied, and nothing that is barred."""
    piece = piece_of(graph, segment.operations, rules, Said(found.stays, found.again, read=frozenset(found.read)))
    least = least_kept(piece)
    return _too_little(name, one.most, piece, least, proved=True) if piece.bytes(least) > one.most else one


def _too_little(name: str, most: int, piece: Piece, least: frozenset[int], proved: bool) -> TooLittle:
    holding = sorted(least, key=lambda v: (-piece.sizes[v], v))
    why = tuple((v, piece.why.get(v, "what is not kept is computed from it")) for v in holding)
    return TooLittle(name, most, piece.bytes(least), proved, why)


def _together(
    graph: Graph, segments: Mapping[str, Segment], rules: Rules, found: Known, one: TooLittle
) -> Mapping[str, Settled] | TooLittle:
    said = Said(found.stays, found.again, read=frozenset(found.read))
    pieces = {name: piece_of(graph, segment.operations, rules, said) for name, segment in segments.items()}
    most = {name: _most(segments[name], piece) for name, piece in pieces.items()}
    chosen = keep_together(pieces, most)
    if chosen.kept is None:
        return replace(one, together=chosen.infeasible)
    done = dict[str, Settled]()
    for name, piece in pieces.items():
        kept, plain = chosen.kept[name], saved_storages(graph, segments[name].operations)
        done[name] = Settled(kept, piece.again(kept), piece.bytes(kept), bytes_of(graph, plain), most[name])
    return done


def _most(segment: Segment, piece: Piece) -> int:
    return piece.bytes(least_kept(piece)) if segment.most is None else segment.most
