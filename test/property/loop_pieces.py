"""Composition of the loops of `rewritten_loops.py`: as one loop, as consecutive loops, or as nested loops."""

from __future__ import annotations

from recompute.test.property.loop_writer import Loop, Program, V, Writer, turned

SLIPS = ("begins", "other", "number", "carries", "size")
"""A piece begins as the first one did, or one of its carries does; counts as the first one did; takes the carries for
each other; is one longer."""


class Pieces(Writer):
    """Writer of whole loops."""

    def loop(self, loop: Loop, state: list[str], captured: list[str]) -> list[str]:
        """Return the state after the loop. `captured`: the stacks, if they are not part of the state."""
        kind, size = loop.kind, loop.size

        def run(start: int, end: int, state: list[str]) -> list[str]:
            bounds = start, end, loop.step
            return self.counted(
                kind, bounds, state, lambda i, s: self.iteration(loop, i, s, captured), loop.turned, loop.compares
            )

        if loop.pieces == "whole":
            return run(loop.start, loop.end, state)
        if loop.pieces == "peeled":
            first = self.iteration(loop, self.constant(loop.start, kind), state, captured)
            return run(loop.start + loop.step, loop.end, first)
        if loop.pieces == "split":
            middle = loop.start + loop.step * size
            first = run(loop.start, middle, state)
            back = {"number": middle - loop.start, "size": 1}.get(loop.slip, 0)
            return run(middle - back, loop.end - back * (loop.slip == "number"), slipped(loop.slip, state, first))
        return self.in_other_counts(loop, state, captured)

    def in_other_counts(self, loop: Loop, state: list[str], captured: list[str]) -> list[str]:
        """Return the state after a loop that counts from zero by ones, or that encloses another loop."""
        kind, t = loop.kind, f"tensor<{loop.kind}>"

        def place(number: str) -> str:
            by = self.line(f"multiply {number}, {self.constant(loop.step, kind)}", t)
            return self.line(f"add {by}, {self.constant(loop.start, kind)}", t)

        def iteration_of(i: str, inner: list[str]) -> list[str]:
            return self.iteration(loop, place(i), inner, captured)

        if loop.pieces == "counted":
            return self.counted(kind, (0, loop.trips(), 1), state, iteration_of, loop.turned)
        size = 2 if loop.pieces == "parity" else loop.size

        def chunk(q: str, outer: list[str]) -> list[str]:
            base = self.line(f"multiply {q}, {self.constant(size + (loop.slip == 'size'), kind)}", t)

            def within(r: str, inner: list[str]) -> list[str]:
                return iteration_of(r if loop.slip == "number" else self.line(f"add {base}, {r}", t), inner)

            outer = slipped(loop.slip, state, outer)
            if loop.pieces == "parity":
                for r in range(size):
                    outer = within(self.constant(r, kind), outer)
                return outer
            return self.counted(kind, (0, size, 1), outer, within, loop.turned)

        return self.counted(kind, (0, -(-loop.trips() // size), 1), state, chunk)


def slipped(slip: str, begin: list[str], state: list[str]) -> list[str]:
    """Return the state with which a piece begins, with the error `slip`."""
    wrong = {
        "begins": [*begin[:2], *state[2:]],
        "other": [state[0], begin[1], *state[2:]],
        "carries": turned(state),
    }
    return wrong.get(slip, state)


def written(program: Program) -> str:
    """Return the text of a module with one function of a vector, rows, and the initial value of the second loop."""
    writer = Pieces(program)
    zero = writer.constant(program.begins, "f32")
    highs = [f"tensor<{height}x3xf32>" for height in program.heights]
    stacks = [writer.line(f"broadcast_in_dim {zero}, dims = []", f"(tensor<f32>) -> {high}") for high in highs]
    first, other, *stacks = writer.loop(program.loops[0], ["%x", "%ct", *stacks], [])
    last, *_ = writer.loop(program.loops[1], ["%ct", other], stacks)
    returned, types = [first, last], [V, V]
    if program.returned:
        returned, types = returned + stacks, types + highs
    lines = "\n".join([*writer.lines, f"func.return {', '.join(returned)} : {', '.join(types)}"])
    arguments = f"%x: {V}, %w: tensor<{program.rows}x3xf32>, %ct: {V}"
    return f"func.func public @main({arguments}) -> ({', '.join(types)}) {{\n{lines}\n}}\n"
