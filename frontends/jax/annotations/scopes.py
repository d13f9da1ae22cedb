"""Named scopes for blocks of a model, for flax nnx and equinox modules, and for calls.

    def loss(model, x):                       # flax nnx or equinox
        model = recompute.jax.named(model)    # calls to its modules run in scopes such as LM/blocks0/attention
        return jnp.mean(model(x) ** 2)

The names appear as report rows and as segments. A segment is a part of the forward pass that is recomputed together. A
module is named after the attribute of its parent that holds it. The name of a module in a list consists of the
attribute and the index. The outermost module, and modules that no attribute holds, are named after their class.

`named` changes neither the model nor its classes. It returns a copy that shares all arrays and variables. The modules
of the copy are instances of subclasses whose `__call__` enters the scope. Make the copy inside the function that is
differentiated.

For calls through the interfaces of MindSpore and Paddle, the scope encodes the treatment of the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar, cast

import jax
from jax.extend import source_info_util

from ....analysis.request.scope_names import DEFAULT, CallTreatment, MarkedCall, Switches, format_scope

if TYPE_CHECKING:

    class Scope(ContextDecorator, AbstractContextManager[None]):
        """The type of `jax.named_scope(...)`."""


SEPARATORS = frozenset("/()#")


def block(name: str) -> Scope:
    """Return a `jax.named_scope`, whose operations form a segment. Use it in `with` or as a decorator.

    Args:
        name: The name of the segment.

    Raises:
        TypeError: If the name is not a str.
        ValueError: If the name is empty or contains one of / ( ) #.

    Example:
        >>> with recompute.jax.block("attention"):  # doctest: +SKIP
        ...     x = attention(x)
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"block: name must be a str, not {type(name).__name__}")
    if not name or SEPARATORS & set(name):
        raise ValueError(f"block: '{name}' cannot name a segment: give a non-empty name without / ( ) #")
    return jax.named_scope(name)  # pyright: ignore[reportReturnType]


R = TypeVar("R")
_NUMBERS = count()


def call_in_scope(
    function: Callable[..., R],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    kind: CallTreatment = CallTreatment.SEGMENT,
    switches: Switches = DEFAULT,
) -> R:
    """Call a function inside a scope that encodes the treatment of its operations under `recompute.jax.jit`.

    Args:
        function: The function.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        kind: Whether the operations form a segment, are all recomputed, or are all saved.
        switches: The options of the segment.

    Returns:
        The result of the function.
    """
    with jax.named_scope(format_scope(MarkedCall(segment_name(function), next(_NUMBERS), kind, switches))):
        return function(*args, **kwargs)


def segment_name(function: object) -> str:
    """Return the segment name for calls to a function or module: its own name or, if it has none, the name of its
    class.
    """
    name = getattr(function, "__name__", None) or getattr(function, "name", None)
    return name if isinstance(name, str) else type(function).__name__


M = TypeVar("M")
_MODULES = (("equinox", "Module"), ("flax.nnx", "Module"))
_LINEN = (("flax.linen", "Module"),)


IS_NAMED = "__recompute_is_named__"
"""The attribute that marks classes whose calls already enter a scope."""
_PLAIN: Mapping[type[Any], Any] = {kind: kind for kind in (list, tuple, dict)}
"""The containers whose elements are copied; instances of their subclasses are not copied."""


def named(model: M) -> M:
    """Return a copy of a model whose modules run in named scopes.

    Args:
        model: A flax nnx or equinox module. A flax linen module already has such scopes and is returned unchanged.

    Raises:
        TypeError: For anything else.
    """
    if is_one_of(model, _LINEN):
        return model
    if not is_one_of(model, _MODULES):
        raise TypeError(f"named takes a module of flax nnx or equinox, not {type(model).__name__}")
    return _Copies().of_module(model, "")


def is_one_of(value: object, kinds: tuple[tuple[str, str], ...]) -> bool:
    """Return whether the class of a value derives from one of these classes, given by name.

    The framework is not imported.
    """
    return any(
        base.__name__ == name and base.__module__.startswith(package)
        for base in type(value).__mro__
        for package, name in kinds
    )


class _Copies:
    """The copies of modules, by the identity of the original. A shared module stays shared, and keeps the name of its
    first occurrence."""

    def __init__(self) -> None:
        self._copies: dict[int, Any] = {}

    def of(self, value: Any, name: str) -> Any:
        if is_one_of(value, _MODULES):
            return self.of_module(value, name)
        kind: Any = _PLAIN.get(_type_of(value))
        if kind is dict:
            return {key: self.of(element, f"{name}.{key}") for key, element in value.items()}
        if kind is None:
            return value
        return kind([self.of(element, f"{name}{index}") for index, element in enumerate(value)])

    def of_module(self, module: Any, name: str) -> Any:
        if id(module) not in self._copies:
            copy: Any = object.__new__(_in_a_scope(_type_of(module), _as_scope(name)))
            self._copies[id(module)] = copy
            copy.__dict__.update(self._members(module.__dict__, name))  # `setattr` is forbidden for frozen modules.
        return self._copies[id(module)]

    def _members(self, members: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Return copies of the members. The members of a list module are named by an index, appended to `name`."""
        return {key: self.of(member, f"{name}{key}" if key.isdigit() else key) for key, member in members.items()}


def _type_of(value: object) -> type[Any]:
    return type(value)


@cache
def _in_a_scope(kind: type[Any], name: str) -> type[Any]:
    """Return a subclass whose calls run in a scope; the class itself if it has no `__call__` or the name is empty."""
    call = getattr(kind, "__call__", None)  # noqa: B004
    if call is None or not name:
        return kind

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        with jax.named_scope(name):
            return call(self, *args, **kwargs)

    members = {"__call__": __call__, IS_NAMED: True, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    metaclass: Any = type(kind)
    return metaclass(kind.__name__, (kind,), {**members, "__doc__": kind.__doc__})


def _as_scope(name: str) -> str:
    return "".join("." if letter in SEPARATORS else letter for letter in name)


source_info_util.register_exclusion(__file__)
_running: ContextVar[tuple[Any, ...]] = ContextVar(
    "the modules whose calls are running, the outermost first", default=()
)


@contextmanager
def module_scopes(
    root: type[Any], is_layer: Callable[[type[Any]], bool] = lambda _: True, step: Any = None
) -> Generator[None, None, None]:
    """Within the context, run calls to modules in named scopes.

    Args:
        root: The base class of the modules.
        is_layer: A predicate that returns whether calls to instances of a class run in scopes.
        step: A module whose call is the whole step, including the gradient. It is not treated as part of the model.
    """
    kinds = [kind for kind in _subclasses(root) if "__call__" in vars(kind) and is_layer(kind)]
    calls = [(kind, vars(kind)["__call__"]) for kind in kinds]
    for kind, call in calls:
        _set_call(kind, _in_its_scope(call))
    token = _running.set(() if step is None else (step,))
    try:
        yield
    finally:
        _running.reset(token)
        for kind, call in calls:
            _set_call(kind, call)


def _set_call(kind: type[Any], call: Any) -> None:
    type.__setattr__(kind, "__call__", call)  # A metaclass may forbid `setattr`.


def _subclasses(root: type[Any]) -> Iterator[type[Any]]:
    """Yield a class and all classes that derive from it, each once."""
    seen, ahead = set[type[Any]](), [root]
    while ahead:
        if (kind := ahead.pop()) not in seen:
            seen.add(kind)
            ahead.extend(type.__subclasses__(kind))
            yield kind


def _in_its_scope(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def scoped(self: Any, *args: Any, **kwargs: Any) -> Any:
        around = _running.get()
        # A call to a base class belongs to the scope of its module, and a module of `recompute.jax.named` has a scope.
        if (around and around[-1] is self) or getattr(self, IS_NAMED, False):
            return call(self, *args, **kwargs)
        token = _running.set((*around, self))
        try:
            with jax.named_scope(_name_of(self, around[-1] if around else None)):
                return call(self, *args, **kwargs)
        finally:
            _running.reset(token)

    return scoped


def _name_of(module: Any, parent: Any) -> str:
    members = cast(dict[str, Any], {} if parent is None else vars(parent))
    for name, member in members.items():
        if member is module:
            return name
        index = next((at for at, element in enumerate(_elements(member)) if element is module), None)
        if index is not None:
            return f"{name}{index}"
    return type(module).__name__


def _elements(member: Any) -> list[Any]:
    """Return the elements of a list, a tuple, a dict, or a list module of flax nnx."""
    if isinstance(member, dict):
        values: list[Any] = list(member.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        return values
    is_sequence = isinstance(member, list | tuple) or type(member).__name__ == "List"
    elements: list[Any] = list(member) if is_sequence else []  # pyright: ignore[reportUnknownArgumentType]
    return elements
