"""`paddle.incubate.optimizer.RecomputeOptimizer`: an optimizer whose steps recompute the operations between
checkpoints.

Example:

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

from ..messages.argument_checks import type_name
from .optimizer_checkpoints import Checkpoints
from .optimizer_program import (
    Program,
    apply_step,
    differentiated_leaves,
    gradients_by_leaf,
    gradients_of,
    is_traced,
    leaf_names,
)

# The optimizer's operations get the location of the user's line instead of a line in this file.
source_info_util.register_exclusion(__file__)
_JAX: Any = jax
"""Typed as `Any`, because the types of the library are incomplete."""
Pairs = list[tuple[Any, Any]]
Loss = Callable[[Any], Any]


class RecomputeOptimizer:
    """An optimizer with checkpoints. In its steps, `recompute.jax.jit` recomputes the operations between the
    checkpoints.

    Without checkpoints, `recompute.jax.jit` chooses the operations itself. Under plain `jax.jit` nothing is recomputed.

    Args:
        optimizer: The inner optimizer, an object with `init(parameters)` and `update(gradients, state, parameters) ->
            (updates, state)`, as in optax.

    Raises:
        TypeError: For an optimizer without these methods.
    """

    def __init__(self, optimizer: Any):
        for method in ("init", "update"):
            if not callable(getattr(optimizer, method, None)):
                raise TypeError(
                    "RecomputeOptimizer: an optimizer must have init and update, but "
                    f"{type_name(optimizer)} has no {method}"
                )
        self._optimizer = optimizer
        self._checkpoints = Checkpoints()
        self._kept: Program | None = None
        self._program: Callable[[], Program | None] = _no_program
        self._losses: weakref.WeakKeyDictionary[Program, Any] = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"RecomputeOptimizer({type_name(self._optimizer)}, checkpoints={list(self._checkpoints.names)})"

    def startup(self, parameters: Any) -> Program:
        """Return the initial program: the parameters, the initial state of the inner optimizer, and the loss NaN.

        Args:
            parameters: A pytree of arrays.
        """
        parameters = _JAX.tree.map(_JAX.numpy.asarray, parameters)
        with _JAX.debug_nans(False):  # The NaN is intended.
            no_loss = _JAX.numpy.full((), np.nan, _JAX.numpy.result_type(float))
        return Program(parameters, self._optimizer.init(parameters), no_loss)

    def set_checkpoints(self, checkpoints: Sequence[Any]) -> None:
        """Set the checkpoints: the borders between segments.

        If the loss calls this method while `backward` or `minimize` runs the loss, the list applies to that run only.

        Args:
            checkpoints: A list of names that `jax.ad_checkpoint.checkpoint_name` gives. If the loss calls this
                method, the list may also contain values that the loss itself computes, but not values of a function
                that it jits or loops over. An empty list means no checkpoints.

        Raises:
            TypeError: For anything but a list of names and arrays.
            ValueError: For a name that is empty or contains a comma.
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
        """Return the (parameter, gradient) pairs, in the order of the parameters' leaves.

        Args:
            loss: A function from the parameters to a scalar.
            startup_program: The `Program` that `startup` or a step has returned.
            parameter_list: The parameters to differentiate the loss with respect to: a collection of names, such as
                `layers/0/w`, or of the parameters themselves; by default all.
            no_grad_set: The parameters for which no gradient is computed, in the same form.
            callbacks: Functions that take the name, the parameter and the gradient of a pair. The result of a function
                replaces the gradient, unless it is None.
            checkpoints: The checkpoints for this call, in place of the checkpoints that are set.

        Raises:
            ValueError: If there is no program, and for unknown parameters.
            TypeError: For a loss that is not a function returning a scalar, and for callbacks that are not callable.
        """
        program = _program("backward", startup_program)
        value, pairs = self._differentiate(
            loss,
            program,
            parameter_list=parameter_list,
            no_grad_set=no_grad_set,
            callbacks=callbacks,
            checkpoints=checkpoints,
        )
        self._remember(program, value)
        return pairs

    def apply_gradients(self, params_grads: Sequence[tuple[Any, Any]]) -> Program:
        """Apply a step of the inner optimizer to the program of the last `backward`. Return the new program.

        A parameter without a pair stays unchanged, bit for bit. Its part of the optimizer state also stays unchanged,
        in each pytree that has the structure of the parameters, such as the moments of Adam. State that all parameters
        share, such as the step count of Adam, advances.

        Args:
            params_grads: The pairs that `backward` returned. Gradients may be replaced, and pairs may be left out.

        Raises:
            ValueError: If `backward` was not called before, and for a pair whose first element is not a parameter.
        """
        program = self._program()
        if program is None:
            raise ValueError(
                "apply_gradients: no program from backward is available. Call backward first and keep a reference to "
                "the program passed to it, or use apply_optimize(loss, program, params_grads)"
            )
        return self._apply(program, params_grads)

    def apply_optimize(
        self, loss: Loss, startup_program: Program | None, params_grads: Sequence[tuple[Any, Any]]
    ) -> Program:
        """Apply a step of the inner optimizer to this program, as `apply_gradients` does. Return the new program.

        The loss is not computed: its value comes from the last `backward` on this program, if there was one.
        """
        return self._apply(_program("apply_optimize", startup_program), params_grads)

    def minimize(
        self,
        loss: Loss,
        startup_program: Program | None = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
    ) -> tuple[Program, Pairs]:
        """Run `backward`, then `apply_gradients`.

        Args:
            loss: As in `backward`.
            startup_program: As in `backward`.
            parameter_list: As in `backward`.
            no_grad_set: As in `backward`.

        Returns:
            The updated program, which holds the loss, and the (parameter, gradient) pairs. A jitted step that donates
            its program must return only the program, because the pairs hold the old parameters.
        """
        program = _program("minimize", startup_program)
        value, pairs = self._differentiate(
            loss, program, parameter_list=parameter_list, no_grad_set=no_grad_set, callbacks=None, checkpoints=None
        )
        return apply_step(self._optimizer, program, gradients_by_leaf(program.parameters, pairs), value), pairs

    def load(self, state: Any) -> None:
        """Raise `NotImplementedError`, as Paddle's method does."""
        raise NotImplementedError(
            "load function is not supported by Recompute Optimizer for now: the state is in the program, so create "
            "Program(parameters, state) from the saved values"
        )

    def _differentiate(
        self, loss: Any, program: Program, parameter_list: Any, no_grad_set: Any, callbacks: Any, checkpoints: Any
    ) -> tuple[Any, Pairs]:
        if not callable(loss):
            raise TypeError(f"the loss must be a function from the parameters to a scalar, not {type_name(loss)}")
        hooks = _hooks(callbacks)
        numbers = differentiated_leaves(program.parameters, parameter_list, no_grad_set)
        leaves = _JAX.tree.leaves(program.parameters)
        names = leaf_names(program.parameters)
        value, gradients = gradients_of(self._checkpoints, loss, program.parameters, numbers, checkpoints)
        pairs = [
            (leaves[number], _run_hooks(hooks, names[number], leaves[number], gradient))
            for number, gradient in zip(numbers, gradients, strict=True)
        ]
        return value, pairs

    def _remember(self, program: Program, value: Any) -> None:
        """Store the program and the loss for `apply_gradients`.

        A traced program is referenced weakly, because a tracer must not outlive its trace.
        """
        traced = is_traced(program)
        self._kept = None if traced else program
        self._program = weakref.ref(program)
        if traced or not is_traced(value):
            self._losses[program] = value

    def _apply(self, program: Program, params_grads: Any) -> Program:
        gradients = gradients_by_leaf(program.parameters, params_grads)
        updated = apply_step(self._optimizer, program, gradients, self._losses.pop(program, None))
        if self._program() is program:
            self._kept, self._program = None, _no_program
        return updated


def _no_program() -> None:
    return None


def _program(caller: str, program: Any) -> Program:
    if program is None:
        raise ValueError(f"{caller}: JAX has no default program: give startup_program=optimizer.startup(parameters)")
    if not isinstance(program, Program):
        raise TypeError(
            f"{caller}: startup_program must be the result of startup(parameters), not {type_name(program)}"
        )
    if not all(hasattr(leaf, "dtype") for leaf in _JAX.tree.leaves(program.parameters)):
        raise TypeError(
            f"{caller}: the parameters of startup_program must be arrays, like those that startup(parameters) returns"
        )
    return program


def _hooks(callbacks: Any) -> Sequence[Callable[[str, Any, Any], Any]]:
    if callbacks is None:
        return ()
    if not isinstance(callbacks, list | tuple):
        raise TypeError(f"backward: callbacks must be a list of functions, not {type_name(callbacks)}")
    for index, hook in enumerate(callbacks):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if not callable(hook):  # pyright: ignore[reportUnknownArgumentType]
            raise TypeError(f"backward: callbacks[{index}] must be a function, not {type_name(hook)}")  # pyright: ignore[reportUnknownArgumentType]
    return callbacks  # pyright: ignore[reportUnknownVariableType]


def _run_hooks(hooks: Sequence[Callable[[str, Any, Any], Any]], name: str, parameter: Any, gradient: Any) -> Any:
    for hook in hooks:
        replacement = hook(name, parameter, gradient)
        gradient = gradient if replacement is None else replacement
    return gradient
