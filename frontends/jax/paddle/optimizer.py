"""`paddle.incubate.optimizer.RecomputeOptimizer`: an optimizer, and the values between which its step is recomputed.

optimizer = RecomputeOptimizer(optax.adam(0.01))
optimizer._set_checkpoints(["fc_1", "pred"])                    # names that `checkpoint_name` gave
program = optimizer.startup(parameters)

@recompute.jax.jit
def step(program, batch):
    return optimizer.minimize(lambda parameters: loss(parameters, batch), program)[0]
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import source_info_util

from .apply import applied
from .checkpoints import Checkpoints
from .gradients import gradients_of
from .kinds import kind_of
from .program import Program, chosen, is_traced, names_of, paired

# What an optimizer adds comes from the user's lines, not from those here.
source_info_util.register_exclusion(__file__)
_JAX: Any = jax
"""Partly unknown to type checkers."""
Pairs = list[tuple[Any, Any]]
Loss = Callable[[Any], Any]


class RecomputeOptimizer:
    """Steps as the inner optimizer takes them; `recompute.jax.jit` recomputes what lies between the checkpoints.

    optimizer: what has `init(parameters)` and `update(gradients, state, parameters) -> (updates, state)`, as those of
    optax have. Raises `TypeError` for anything else.

    Without checkpoints the step is what `recompute.jax.jit` makes of it. Under plain `jax.jit` nothing is recomputed.
    """

    def __init__(self, optimizer: Any):
        for method in ("init", "update"):
            if not callable(getattr(optimizer, method, None)):
                raise TypeError(
                    f"RecomputeOptimizer: an optimizer has init and update, and {kind_of(optimizer)} has no {method}"
                )
        self._optimizer = optimizer
        self._checkpoints = Checkpoints()
        self._kept: Program | None = None
        self._program: Callable[[], Program | None] = _nothing
        self._losses: weakref.WeakKeyDictionary[Program, Any] = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"RecomputeOptimizer({kind_of(self._optimizer)}, checkpoints={list(self._checkpoints.names)})"

    def startup(self, parameters: Any) -> Program:
        """What Paddle's startup program makes: these parameters, a pytree of arrays, and the inner one's state.

        Its loss is NaN until a step has one.
        """
        parameters = _JAX.tree.map(_JAX.numpy.asarray, parameters)
        with _JAX.debug_nans(False):  # this one is meant
            no_loss = _JAX.numpy.full((), np.nan, _JAX.numpy.result_type(float))
        return Program(parameters, self._optimizer.init(parameters), no_loss)

    def set_checkpoints(self, checkpoints: Sequence[Any]) -> None:
        """The values between which segments lie: a list of names of `jax.ad_checkpoint.checkpoint_name`, or of values.

        Called inside of the loss, while `backward` or `minimize` runs it, it holds for that run alone, in place of what
        was said before; only there values can be known, and only those that the loss itself has, not a function that
        it jits or loops over. An empty list sets nothing. Raises `TypeError` for anything but a list of these.
        """
        self._checkpoints.set(checkpoints)

    _set_checkpoints = set_checkpoints

    def backward(
        self,
        loss: Loss,
        startup_program: Program | None = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
        callbacks: Sequence[Callable[[str, Any, Any], Any]] | None = None,
        checkpoints: Sequence[Any] | None = None,
    ) -> Pairs:
        """The (parameter, gradient) pairs, in the order of the parameters' leaves.

        loss: from the parameters to a scalar. startup_program: the `Program` that `startup` or a step gave.
        parameter_list, no_grad_set: by which parameters the loss is differentiated and by which not: collections of
        names, as `layers/0/w`, and of the parameters themselves; nothing is computed for the others. callbacks: each is
        called with the name, the parameter and the gradient of each pair; what it returns, unless None, is the gradient
        from there on. checkpoints: for this call, in place of those that are set.

        Raises `ValueError` without a program and for unknown parameters, `TypeError` for a loss that is no function to
        a scalar, and for callbacks that are not callable.
        """
        program = _program("backward", startup_program)
        value, pairs = self._differentiated(loss, program, parameter_list, no_grad_set, callbacks, checkpoints)
        self._remember(program, value)
        return pairs

    def apply_gradients(self, params_grads: Sequence[tuple[Any, Any]]) -> Program:
        """The program after the step, for the program that the last `backward` was given, and its pairs.

        The gradients may be others, and pairs may be left out. A parameter without a pair keeps its bits, and so does
        what the state has for it, wherever the state has a pytree like that of the parameters (momentum, both moments
        of Adam). What the state has once for all (the count of Adam) goes on.

        Raises `ValueError` without a `backward` before, and for a pair whose first element is no parameter.
        """
        program = self._program()
        if program is None:
            raise ValueError(
                "apply_gradients: there was no backward before, or its program is gone: call backward with a program "
                "that you hold, or apply_optimize(loss, program, params_grads)"
            )
        return self._apply(program, params_grads)

    def apply_optimize(
        self, loss: Loss, startup_program: Program | None, params_grads: Sequence[tuple[Any, Any]]
    ) -> Program:
        """As `apply_gradients`, for this program. The loss is not run; its value is there if `backward` had it."""
        return self._apply(_program("apply_optimize", startup_program), params_grads)

    def minimize(
        self,
        loss: Loss,
        startup_program: Program | None = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
    ) -> tuple[Program, Pairs]:
        """`backward` and `apply_gradients`: the program after the step, with the value of the loss, and the pairs.

        A jitted step that donates its program returns the program alone: the pairs hold the old parameters.
        """
        program = _program("minimize", startup_program)
        value, pairs = self._differentiated(loss, program, parameter_list, no_grad_set, None, None)
        return applied(self._optimizer, program, paired(program.parameters, pairs), value), pairs

    def load(self, state: Any) -> None:
        """Raises `NotImplementedError`, as Paddle's does."""
        raise NotImplementedError(
            "load function is not supported by Recompute Optimizer for now: the state is in the program, so make "
            "a Program(parameters, state) of what was saved"
        )

    def _differentiated(
        self, loss: Any, program: Program, wanted: Any, unwanted: Any, callbacks: Any, checkpoints: Any
    ) -> tuple[Any, Pairs]:
        if not callable(loss):
            raise TypeError(f"the loss is a function from the parameters to a scalar, not {kind_of(loss)}")
        hooks = _hooks(callbacks)
        numbers = chosen(program.parameters, wanted, unwanted)
        leaves, names = _JAX.tree.leaves(program.parameters), names_of(program.parameters)
        value, gradients = gradients_of(self._checkpoints, loss, program.parameters, numbers, checkpoints)
        found = zip(numbers, gradients, strict=True)
        return value, [(leaves[number], _hooked(hooks, names[number], leaves[number], one)) for number, one in found]

    def _remember(self, program: Program, value: Any) -> None:
        """For `apply_gradients`. What is traced is not held: it lives as long as the program of the caller."""
        traced = is_traced(program)
        self._kept = None if traced else program
        self._program = weakref.ref(program)
        if traced or not is_traced(value):
            self._losses[program] = value

    def _apply(self, program: Program, params_grads: Any) -> Program:
        done = applied(
            self._optimizer, program, paired(program.parameters, params_grads), self._losses.pop(program, None)
        )
        if self._program() is program:
            self._kept, self._program = None, _nothing
        return done


def _nothing() -> None:
    return None


def _program(caller: str, program: Any) -> Program:
    if program is None:
        raise ValueError(f"{caller}: JAX has no default program: give startup_program=optimizer.startup(parameters)")
    if not isinstance(program, Program):
        raise TypeError(f"{caller}: startup_program is what startup(parameters) gives, not {kind_of(program)}")
    if not all(hasattr(leaf, "dtype") for leaf in _JAX.tree.leaves(program.parameters)):
        raise TypeError(f"{caller}: the parameters of startup_program are arrays, as startup(parameters) makes them")
    return program


def _hooks(callbacks: Any) -> Sequence[Callable[[str, Any, Any], Any]]:
    if callbacks is None:
        return ()
    if not isinstance(callbacks, list | tuple):
        raise TypeError(f"backward: callbacks is a list of functions, not {kind_of(callbacks)}")
    for hook in callbacks:  # pyright: ignore[reportUnknownVariableType]
        if not callable(hook):  # pyright: ignore[reportUnknownArgumentType]
            raise TypeError(f"backward: callbacks is a list of functions, and holds {hook!r}")
    return callbacks  # pyright: ignore[reportUnknownVariableType]


def _hooked(hooks: Sequence[Callable[[str, Any, Any], Any]], name: str, parameter: Any, gradient: Any) -> Any:
    for hook in hooks:
        other = hook(name, parameter, gradient)
        gradient = gradient if other is None else other
    return gradient
