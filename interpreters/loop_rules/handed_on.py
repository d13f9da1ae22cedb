"""Loop-invariant carries, as far as operations show it without value numbers.

while(%a = %x) do { %r = while(%b = %a) do { return %b }; return %r }       both carries are %x throughout
"""

from __future__ import annotations

from xdsl.ir import Operation, OpResult, SSAValue

from ..anatomy import attributes_of, name_of

_IDENTITIES = frozenset({"recompute.depend", "stablehlo.optimization_barrier"})


class HandedOn:
    """Finds invariant carries; analyses each loop once, whatever the nesting."""

    def __init__(self):
        self._carries = dict[Operation, frozenset[int]]()

    def carries(self, loop: Operation) -> frozenset[int]:
        """The carries that an iteration yields unchanged. `loop`: with a condition and a body of one block each."""
        if loop not in self._carries:
            body = loop.regions[1].block
            following = () if body.last_op is None else body.last_op.operands
            pairs = zip(body.args, following, strict=False)
            self._carries[loop] = frozenset(
                index for index, (argument, value) in enumerate(pairs) if self._source(value) is argument
            )
        return self._carries[loop]

    def _source(self, value: SSAValue) -> SSAValue:
        """The source of a value, seen through barriers and loops."""
        while isinstance(value, OpResult) and not attributes_of(op := value.op):
            name = name_of(op)
            if not (
                name in _IDENTITIES or (name == "stablehlo.while" and _is_loop(op) and value.index in self.carries(op))
            ):
                break
            value = op.operands[value.index]
        return value


def _is_loop(op: Operation) -> bool:
    return len(op.regions) == 2 and all(len(region.blocks) == 1 for region in op.regions)
