"""Write `dialects/aten.py`: the operations of ATen, classified by their schemas and tags.

    python docs/generate_aten.py

Run it for a new version of PyTorch, read the difference, and commit it: nothing else reads schemas for these facts.
Some operations are left out, since they do not occur in imported graphs: operations that AOTAutograd decomposes,
operations that return no tensor, and operations that return a tensor with a shape that depends on data.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

TARGET = Path(__file__).resolve().parent.parent / "dialects" / "aten.py"
HEADER = '''"""ATen operations, classified by schemas and tags of PyTorch {version}. Written by docs/generate_aten.py.

PURE    functions of their operands, with results that share no storage with them
VIEWS   views of their first operand
SEEDED  random operations: functions of their operands and of the state of a generator

ON_SIZES are functions of Python's `operator` and of `torch` on symbolic sizes.
"""

from __future__ import annotations

ON_SIZES = """
add and_ eq floordiv ge gt le lt mod mul ne neg or_ pow sub sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt
sym_sum truediv
"""
'''
# Checks, tokens, files and tests; operations that resize a tensor, although their schema is functional; and batch
# normalizations that update their statistics in place, although their schemas do not state it.
LEFT_OUT = re.compile(
    r"aten\._?(foobar|from_file|functional_assert|functional_sym|local_scalar|make_dep_token|nested_|test_)"
    r"|aten\.record_stream"
    r"|aten\.(native|cudnn|miopen)_batch_norm\.|aten\.batch_norm_(gather|update)|aten\._batch_norm_impl"
    r"|aten\._?(resize|set)(_as|_output)?(_sparse)?\.|prims\._make_token|aten\._cudnn_rnn_flatten_weight"
)
# Their schemas do not state that they return their operand with another shape.
UNSTATED_VIEWS = frozenset(
    {"aten._unsafe_view.default", "aten.unsafe_split.Tensor", "aten.unsafe_split_with_sizes.default"}
)
# Their shapes depend on data only if a mask is among the indices.
STATIC = frozenset({"aten.index.Tensor"})
EXCLUDED_TAGS = frozenset({torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape})


def overloads() -> Iterator[tuple[str, Any]]:
    """Yield the qualified name and the overload of each operation of the namespaces aten and prims."""
    torch.ops.prims.convert_element_type  # noqa: B018  (registers the namespace)
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        if namespace in ("aten", "prims"):
            overload = schema.overload_name or "default"
            target = getattr(getattr(getattr(torch.ops, namespace), name, None), overload, None)
            # Operators of TorchScript alone are not known to the dispatcher.
            if target is not None and torch._C._dispatch_has_kernel(target.name()):
                yield f"{namespace}.{name}.{overload}", target


def kind_of(name: str, target: Any) -> str | None:
    """Return the name of the table that an operation belongs to, or None if it is left out."""
    schema, tags = target._schema, set(target.tags)
    types = [str(result.type) for result in schema.returns]
    returns_tensors = "Tensor" in "".join(types) and all("Tensor" in type_ or type_ == "int" for type_ in types)
    if LEFT_OUT.match(name) or not returns_tensors or (tags & EXCLUDED_TAGS and name not in STATIC):
        return None
    if any(argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments):
        return None
    has_kernel = partial(torch._C._dispatch_has_kernel_for_dispatch_key, target.name())
    if has_kernel("CompositeImplicitAutograd") and not has_kernel("CPU"):
        return None
    if torch.Tag.nondeterministic_seeded in tags:
        return "SEEDED"
    if name in UNSTATED_VIEWS or any(result.alias_info is not None for result in schema.returns):
        return "VIEWS" if "Tensor" in str(schema.arguments[0].type) else None
    return "PURE"


def main() -> None:
    tables: dict[str, list[str]] = {"PURE": [], "VIEWS": [], "SEEDED": []}
    for name, target in overloads():
        if (kind := kind_of(name, target)) is not None:
            tables[kind].append(name)
    parts = [HEADER.format(version=torch.__version__.partition("+")[0])]
    for kind, names in tables.items():
        lines = textwrap.fill(" ".join(sorted(set(names))), 119, break_long_words=False, break_on_hyphens=False)
        parts.append(f'\n{kind} = """\n{lines}\n"""\n')
    TARGET.write_text("".join(parts))


if __name__ == "__main__":
    main()
