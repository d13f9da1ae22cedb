"""Properties that MLIR's custom forms omit if they have their default value; the parser does not add them either."""

from __future__ import annotations

from functools import cache

from xdsl.context import Context
from xdsl.ir import Attribute

from ....dialects.context import make_context
from ....mlir_io.parser import ModuleParser

_ACCURATE = "cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh".split()
DEFAULTS: dict[str, dict[str, str]] = {
    "stablehlo.custom_call": {"has_side_effect": "false", "api_version": "1 : i32", "called_computations": "[]"},
    **{
        f"stablehlo.{name}": {
            "result_accuracy": "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>"
        }
        for name in _ACCURATE
    },
}


@cache
def defaults_of(name: str) -> tuple[tuple[str, Attribute], ...]:
    """The omitted properties and default values of the operations of this name."""
    context: Context = make_context()
    return tuple(
        (property, ModuleParser(context, text).parse_attribute()) for property, text in DEFAULTS.get(name, {}).items()
    )
