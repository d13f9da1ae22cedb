"""The contents of dense resources. xDSL stores them outside the attributes, under names that the parser declares."""

from __future__ import annotations

from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import Builtin

ELIDED = "__elided__"
"""The name that MLIR prints for a resource whose content it omits, in place of the resource's name."""
ALIGNMENT_DIGITS = 8
"""The number of hexadecimal digits of the alignment, which precedes the elements."""


def resource_content(name: str) -> str | None:
    """Return the alignment and the elements of a resource as `0x` and lower-case hexadecimal digits; None if the
    program omits them.

    `name`: the name under which the parser stored the resource, which is unique among the resources of all parsed
    texts.
    """
    interface = Builtin.get_interface(OpAsmDialectInterface)
    assert interface is not None, "xDSL's builtin dialect stores resources"
    # All elided resources have the same name, whatever their content was.
    content = None if name.startswith(ELIDED) else interface.lookup(name)
    if not content:
        return None
    return content if content.islower() else content.lower()


def resource_bytes(name: str) -> bytes | None:
    """Return the elements of a resource in little-endian order; None if the program omits them."""
    content = resource_content(name)
    return None if content is None else bytes.fromhex(content.removeprefix("0x")[ALIGNMENT_DIGITS:])


def unknown_content(name: str) -> str:
    """Return the reason and the remedy for a resource whose content the program omits."""
    return (
        f"the content of the resource '{name}' is unknown; give the program with its section "
        "{-# dialect_resources … #-}, which mlir-opt prints unless --mlir-elide-elementsattrs-if-larger or "
        "--mlir-elide-resource-strings-if-larger is set"
    )
