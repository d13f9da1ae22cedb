"""Changes to a module, verified before and after each, and proved equal at the end: one place for all who rewrite."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from ..dialects.collecting import no_collection
from ..dialects.diagnostics import Remark
from ..dialects.recompute import Names
from ..dialects.stablehlo.custom_call import CustomCallOp
from ..dialects.stopwatch import part
from ..interpreters.foreign import registered_pure
from ..interpreters.prove import Proof, prove
from ..rules.names import name_of
from ..rules.registry import BUILT_IN
from .verification import verify_module

Change = Callable[[ModuleOp], None]


class NotProved(DiagnosticException):
    """The result of a rewrite is not proved equal to its input; `proof` says where they part."""

    def __init__(self, proof: Proof, words: str):
        self.proof = proof
        super().__init__(words)


@no_collection()
def take(
    module: ModuleOp,
    changes: Iterable[Change],
    verify: bool = True,
    proof: bool = True,
    original: ModuleOp | None = None,
) -> Proof | None:
    """Change the module in place, and prove that it computes the same as before.

    Raises `Refusal` where the module or what a change makes of it does not verify, and `NotProved`; `proof=False` takes
    the last out. Returns None without changes, and without proof. `original`: the module as it is now, where somebody
    keeps it anyway; else a copy of it is made for the proof.
    """
    if verify:
        _verify(module)
    listed = list(changes)
    before = (original or module.clone()) if listed and proof else None
    for change in listed:
        change(module)
        if verify:
            _verify(module)
    return None if before is None else _demanded(before, module)


@no_collection()
def take_apart(
    original: ModuleOp, write: Callable[[ModuleOp], ModuleOp], proof: bool = True
) -> tuple[ModuleOp, Proof | None]:
    """As `take`, for what leaves the module as it is and writes another one, which is returned."""
    _verify(original)
    module = write(original)
    _verify(module)
    return module, _demanded(original, module) if proof else None


@part("verify")
def _verify(module: ModuleOp) -> None:
    verify_module(module)


def assumption_remarks(proof: Proof, module: ModuleOp) -> list[Remark]:
    """Remarks on the assumptions that the proof rests on."""
    return [Remark(module, assumption) for assumption in proof.assumptions]


@part("prove")
def _demanded(before: ModuleOp, after: ModuleOp) -> Proof:
    # `recompute-shard-kept` adds constraints on purpose; the proof reports them as an assumption.
    adds_constraints = any(Names.SHARDS_KEPT in op.attributes for op in after.walk())
    repeatable = {op.call_target_name.data for op in after.walk() if isinstance(op, CustomCallOp) and _is_declared(op)}
    proof = prove(before, after, one_source=True, added_constraints=adds_constraints, repeatable=repeatable)
    if not proof.proved:
        raise NotProved(
            proof,
            f"nothing is written: the result is not proved equal to the input: {proof.reason} "
            f"{_without_word(after)}(--no-proof writes it all the same)",
        )
    return proof


def _is_declared(op: CustomCallOp) -> bool:
    """Whether the option `repeatable`, or the step itself, says that the call returns the same each time."""
    return Names.REPEATABLE in op.attributes


def _without_word(module: ModuleOp) -> str:
    """What to do where copies are of operations that the user declared to the passes alone."""
    copied = {name_of(op) for op in module.walk() if Names.COPY in op.attributes}
    names = ", ".join(sorted(copied - BUILT_IN.keys() - registered_pure()))
    if not names:
        return ""
    return f"(the proof takes {names} for an effect: vouch for it with recompute.interpreters.register_pure) "
