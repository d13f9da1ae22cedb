"""Rewrites of XLA:CPU before fusion: operations that it inserts, replaces or removes.

Layouts: an operand whose layout differs from the layout that its kernel requires (`traits.py`) is transposed into a
copy. The convolution that computes a kernel gradient reads such a copy of the forward activation. The copy is made as
soon as the activation exists. Products in bf16 are computed in f32.

Equal constants: equal values that are computed only from constants are computed once. If several operations overwrite
such a value, each of them gets a copy, except that the last operation needs no copy if use-def edges order all other
readers of the value before it (`xla/service/copy_insertion.cc`).

Pooling: the gradient of a maximum over windows, `select_and_scatter`, becomes a windowed reduction that finds the index
of each maximum, and a scatter to these indices (`xla/service/select_and_scatter_expander.cc`). The reduction depends
only on the operand, so it runs in the forward pass. It reads the indices of all elements, which are computed at the
start of the step as one array per dimension of the operand. Each array has the operand's shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from ....planning.graph import NO_MAKER
from ....rules.fusion import WRITES_OVER
from .program import Draft, Kernel, NewOperation, SourceProgram, WindowShape, XlaForm
from .traits import Trait, Traits

_LOOP = "stablehlo.while"


def overwritten(program: SourceProgram, op: int) -> Sequence[int]:
    """Return the operands that the operation may overwrite in place."""
    name, operands = program.names[op], program.operands[op]
    return operands if name == _LOOP else operands[:1] if name in WRITES_OVER else ()


def uncopied_operands(program: SourceProgram) -> Mapping[int, tuple[int, int]]:
    """Return the operand that needs no copy, for each class of equal values that operations overwrite.

    The keys are the ids of the classes in `SourceProgram.alike`; the values are pairs of an operation and an operand
    index.
    """
    alike = program.alike
    last = {
        alike[value]: (op, index)
        for op, name in enumerate(program.names)
        if name in WRITES_OVER
        for index, value in enumerate(overwritten(program, op))
        if value in alike and index not in program.handed_on.get(op, ())
    }
    readers = dict[int, set[int]]()
    for op, values in enumerate(program.reads) if last else ():
        for value in values:
            if (number := alike.get(value)) in last:
                readers.setdefault(number, set()).add(op)
    return {
        number: (op, index)
        for number, (op, index) in last.items()
        if not _is_captured(program, op, number) and _all_before(program, op, readers[number] - {op})
    }


def _is_captured(program: SourceProgram, op: int, number: int) -> bool:
    """Return whether the regions of the loop capture a value of the equality class `number` that is not an operand of
    the loop."""
    captured = set(program.reads[op]).difference(program.operands[op])
    return any(program.alike.get(value) == number for value in captured)


def _all_before(program: SourceProgram, op: int, others: Set[int]) -> bool:
    remaining = set(others)
    pending = [op]
    visited = set[int]()
    # Operands precede their readers, so no path from an operation before the first of `others` leads to one of them.
    first = min(others, default=op)
    while pending and remaining:
        for value in program.reads[pending.pop()]:
            owner = program.root[value]
            source = program.maker[owner]
            if source >= first and source not in visited and owner not in program.constants:
                visited.add(source)
                remaining.discard(source)
                pending.append(source)
    return not remaining


@dataclass
class Pools:
    """Expands the gradient of a maximum over windows into a windowed reduction and a scatter.

    `iotas`: the index arrays, by shape and dimension; operands of the same shape share them.
    """

    new: Draft
    iotas: dict[tuple[tuple[int, ...], int], int] = field(default_factory=dict[tuple[tuple[int, ...], int], int])

    def add(self, op: int, operands: Sequence[int]) -> None:
        new, pool, (operand, source, init) = self.new, self.new.program.pools[op], operands
        iotas = [self._iota(op, operand, dimension, pool) for dimension in range(len(pool.shape))]
        sizes = [new.columns.sizes[source]] + [pool.source_index_bytes] * len(pool.shape)
        window = NewOperation("stablehlo.reduce_window", Trait.NONE, [operand, *iotas])
        maxima = new.insert(op, window, sizes, operand)
        index_bytes = [pool.source_index_bytes * len(pool.shape)]
        concatenated = NewOperation("stablehlo.concatenate", Trait.FUSIBLE, maxima[1:])
        (indices,) = new.insert(op, concatenated, index_bytes, operand)
        broadcast = NewOperation("stablehlo.broadcast_in_dim", Trait.NONE, [init])
        (zeros,) = new.insert(op, broadcast, [new.columns.sizes[operand]], operand)
        new.replace(op, "stablehlo.scatter", [zeros, indices, source])

    def _iota(self, op: int, operand: int, dimension: int, pool: WindowShape) -> int:
        key = (pool.shape, dimension)
        if key not in self.iotas:
            size = pool.index_bytes
            (self.iotas[key],) = self.new.insert(op, NewOperation("stablehlo.iota", Trait.FUSIBLE, []), [size], operand)
        return self.iotas[key]


_CAST = "stablehlo.convert"
_PRODUCT = "stablehlo.multiply"
_PRODUCTS = frozenset({_PRODUCT, "stablehlo.divide"})
_IN_LIBRARY = Trait.FUSIBLE | Trait.LIBRARY


def with_kernel_copies(program: SourceProgram) -> XlaForm:
    """Rewrite the program as XLA:CPU does before fusion."""
    writer = _KernelWriter(program, Draft(program))
    changed = _possibly_changed(program)
    for op, read in enumerate(program.reads):
        if op in changed or not writer.replacement.keys().isdisjoint(read):
            writer.add(op)
        else:
            writer.new.keep_unchanged(op)
    return writer.new.form()


def _possibly_changed(program: SourceProgram) -> set[int]:
    """Return the operations that `_KernelWriter.add` may change or omit even if their operands are unchanged."""
    changed = {program.maker[value] for value in program.alike}
    changed.update(program.kernels, program.pools, program.spreads, program.reshapes, program.numbers)
    changed.update([op for op, name in enumerate(program.names) if name in WRITES_OVER])
    if program.masks:
        changed.update([op for op, name in enumerate(program.names) if name == _PRODUCT])
    return changed


@dataclass
class _KernelWriter:
    """A writer that builds the rewritten program, one operation at a time.

    Attributes:
        program, new: The original program, and the draft of the rewritten program.
        replacement: For each value that was rounded or is a duplicate, the value to read in its place.
        first_alike: The first value of each class of equal values.
        first_spread: The result of the first broadcast, for each class of broadcasts and each storage that they read.
        uncopied: See `uncopied_operands`.
        pools: The expander of pooling gradients.
    """

    program: SourceProgram
    new: Draft
    replacement: dict[int, int] = field(default_factory=dict[int, int])
    first_alike: dict[int, int] = field(default_factory=dict[int, int])
    first_spread: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    uncopied: Mapping[int, tuple[int, int]] = field(init=False)
    pools: Pools = field(init=False)

    def __post_init__(self) -> None:
        self.uncopied = uncopied_operands(self.program)
        self.pools = Pools(self.new)

    def add(self, op: int) -> None:
        program = self.program
        kernel = self.program.kernels.get(op)
        if self._is_duplicate(op):
            return self.new.leave_out(op)
        operands = self._simplified_operands(op)
        if op in program.spreads and not self._is_scaled(op) and self._is_duplicate_broadcast(op, operands[0]):
            return self.new.leave_out(op)
        if op in program.pools:
            self.pools.add(op, operands)
        elif kernel is not None:
            self._add_kernel(op, operands, kernel)
        elif program.names[op] == _PRODUCT and op not in program.reshapes:
            self._add_product(op, operands)
        elif program.names[op] in WRITES_OVER:
            self.new.keep(op, self._with_own_operands(op, operands), self._captured(op))
        else:
            self.new.keep(op, operands, self._captured(op))

    def _simplified_operands(self, op: int) -> Sequence[int]:
        """Return the operands that the operation reads after XLA's algebraic simplification."""
        program = self.program
        if op in program.numbers:
            return ()
        operands: Sequence[int] = program.operands[op]
        if not self.replacement.keys().isdisjoint(operands):
            operands = [self.replacement.get(value, value) for value in operands]
        return [operands[program.reshapes[op]]] if op in program.reshapes else operands

    def _add_product(self, op: int, operands: Sequence[int]) -> None:
        """Add a multiplication.

        XLA turns a multiplication by a converted mask into a select. Its kernel library does not support selects.
        """
        read = [self._mask(value) for value in operands]
        self.new.keep(op, read, without=Trait.LIBRARY if read != list(operands) else Trait.NONE)

    def _mask(self, value: int) -> int:
        maker = self.new.columns.maker[value]
        is_mask = maker != NO_MAKER and self.new.origin[maker] in self.program.masks
        return self.new.columns.operands[maker][0] if is_mask else value

    def _is_duplicate(self, op: int) -> bool:
        """Return whether an earlier operation computes the same value from constants; if there is none, record this
        operation."""
        is_duplicate = False
        for value in self.program.makes[op]:
            if (alike := self.program.alike.get(value)) is not None:
                self.replacement[value] = self.first_alike.setdefault(alike, value)
                is_duplicate = self.replacement[value] != value
        return is_duplicate

    def _is_duplicate_broadcast(self, op: int, operand: int) -> bool:
        """Return whether an earlier broadcast computes the same value; if there is none, record this broadcast."""
        (value,) = self.program.makes[op]
        key = self.program.spreads[op], self.new.columns.root[operand]
        self.replacement[value] = self.first_spread.setdefault(key, value)
        return self.replacement[value] != value

    def _is_scaled(self, op: int) -> bool:
        """Return whether the only reader of the broadcast `op` is a product, which is itself multiplied by a scalar.
        XLA folds such a scalar into the broadcast."""
        for _ in range(2):
            if len(readers := self.program.readers[op]) != 1 or self.program.names[readers[0]] not in _PRODUCTS:
                return False
            (op,) = readers
        return any(self.program.maker[value] in self.program.numbers for value in self.program.operands[op])

    def _captured(self, op: int) -> Sequence[int]:
        operands, reads = self.program.operands[op], self.program.reads[op]
        if operands == reads:
            return ()
        return [self.replacement.get(value, value) for value in reads if value not in operands]

    def _with_own_operands(self, op: int, operands: Sequence[int]) -> Sequence[int]:
        """Return the operands, with a copy in place of each overwritten operand that has other readers."""
        own = list(operands)
        unchanged = self.program.handed_on.get(op, frozenset())
        for index, value in enumerate(operands[: len(overwritten(self.program, op))]):
            alike = self.program.alike.get(value)
            if alike is not None and index not in unchanged and self.uncopied.get(alike) != (op, index):
                size = self.new.columns.sizes[value]
                own[index] = self._copy(op, "stablehlo.copy", Trait.NONE, value, size)
        return own

    def _add_kernel(self, op: int, operands: Sequence[int], kernel: Kernel) -> None:
        self.new.keep(op, self._converted(op, operands, kernel))
        if kernel.wide_result:
            # The result is stored in f32, and its readers round it.
            (wide,) = self.program.makes[op]
            narrow, self.new.columns.sizes[wide] = self.new.columns.sizes[wide], kernel.wide_result
            self.replacement[wide] = self._copy(op, _CAST, _IN_LIBRARY | Trait.EXPENSIVE, wide, narrow)

    def _converted(self, op: int, operands: Sequence[int], kernel: Kernel) -> Sequence[int]:
        """Return the operands, copied where the kernel requires another element type or layout."""
        converted = list(operands)
        for index, size in enumerate(kernel.wide):
            if size:
                converted[index] = self._copy(op, _CAST, _IN_LIBRARY, converted[index], size)
        for index, transposed in enumerate(kernel.transposed):
            if transposed:
                size = self.new.columns.sizes[converted[index]]
                converted[index] = self._copy(op, "stablehlo.transpose", Trait.FUSIBLE, converted[index], size)
        return converted

    def _copy(self, origin: int, name: str, traits: Traits, operand: int, size: int) -> int:
        (result,) = self.new.insert(origin, NewOperation(name, traits, [operand]), [size], operand)
        if operand in self.new.columns.constants:
            self.new.columns.constants.add(result)
        return result
