"""Training step as PyTorch/XLA exports it: no locations, `dot`, batch norms, and tuples as results of operations and of
the function."""

from __future__ import annotations

BATCH, WIDTH = 64, 32
EPSILON = "<{epsilon = 1.0e-05 : f32, feature_index = 1 : i64}>"
ROWS, WEIGHTS, FEATURES = f"tensor<{BATCH}x{WIDTH}xf32>", f"tensor<{WIDTH}x{WIDTH}xf32>", f"tensor<{WIDTH}xf32>"
NORMALIZED = f"tuple<{ROWS}, {FEATURES}, {FEATURES}>"


def torch_xla_step(layers: int) -> str:
    """Return layers of a product, a batch norm and a relu, a sum of squares, and the gradients of all weights."""
    weights = [name for layer in range(layers) for name in (f"%w{layer}", f"%s{layer}", f"%o{layer}")]
    types = {name: WEIGHTS if name.startswith("%w") else FEATURES for name in weights}
    arguments = ", ".join([f"%x0: {ROWS}", *(f"{name}: {type_}" for name, type_ in types.items())])
    lines = [f"%zero = stablehlo.constant dense<0.0> : {ROWS}", "%none = stablehlo.constant dense<0.0> : tensor<f32>"]
    for layer in range(layers):
        lines += _forward(layer)
    last = f"%x{layers}"
    lines += [
        f"%squares = stablehlo.multiply {last}, {last} : {ROWS}",
        "%loss = stablehlo.reduce(%squares init: %none) applies stablehlo.add across dimensions = [0, 1]"
        f" : ({ROWS}, tensor<f32>) -> tensor<f32>",
        f"%g{layers} = stablehlo.add {last}, {last} : {ROWS}",
    ]
    for layer in reversed(range(layers)):
        lines += _backward(layer)
    returned = ["%loss", *(f"%d{name[1:]}" for name in weights)]
    result = f"tuple<{', '.join(['tensor<f32>', *types.values()])}>"
    lines += [f"%all = stablehlo.tuple {', '.join(returned)} : {result}", f"return %all : {result}"]
    body = "\n  ".join(lines)
    return f"func.func @main({arguments}) -> {result} {{\n  {body}\n}}\n"


def _forward(layer: int) -> list[str]:
    return [
        f"%h{layer} = stablehlo.dot %x{layer}, %w{layer} : ({ROWS}, {WEIGHTS}) -> {ROWS}",
        f'%n{layer}:3 = "stablehlo.batch_norm_training"(%h{layer}, %s{layer}, %o{layer}) {EPSILON}'
        f" : ({ROWS}, {FEATURES}, {FEATURES}) -> ({ROWS}, {FEATURES}, {FEATURES})",
        f"%t{layer} = stablehlo.tuple %n{layer}#0, %n{layer}#1, %n{layer}#2 : {NORMALIZED}",
        f"%y{layer} = stablehlo.get_tuple_element %t{layer}[0] : ({NORMALIZED}) -> {ROWS}",
        f"%m{layer} = stablehlo.get_tuple_element %t{layer}[1] : ({NORMALIZED}) -> {FEATURES}",
        f"%v{layer} = stablehlo.get_tuple_element %t{layer}[2] : ({NORMALIZED}) -> {FEATURES}",
        f"%x{layer + 1} = stablehlo.maximum %y{layer}, %zero : {ROWS}",
    ]


def _backward(layer: int) -> list[str]:
    mask = f"tensor<{BATCH}x{WIDTH}xi1>"
    turned = f"tensor<{WIDTH}x{BATCH}xf32>"
    return [
        f"%p{layer} = stablehlo.compare GT, %y{layer}, %zero : ({ROWS}, {ROWS}) -> {mask}",
        f"%q{layer} = stablehlo.select %p{layer}, %g{layer + 1}, %zero : {mask}, {ROWS}",
        f'%b{layer}:3 = "stablehlo.batch_norm_grad"(%h{layer}, %s{layer}, %m{layer}, %v{layer}, %q{layer}) {EPSILON}'
        f" : ({ROWS}, {FEATURES}, {FEATURES}, {FEATURES}, {ROWS}) -> ({ROWS}, {FEATURES}, {FEATURES})",
        f"%u{layer} = stablehlo.tuple %b{layer}#0, %b{layer}#1, %b{layer}#2 : {NORMALIZED}",
        f"%k{layer} = stablehlo.get_tuple_element %u{layer}[0] : ({NORMALIZED}) -> {ROWS}",
        f"%ds{layer} = stablehlo.get_tuple_element %u{layer}[1] : ({NORMALIZED}) -> {FEATURES}",
        f"%do{layer} = stablehlo.get_tuple_element %u{layer}[2] : ({NORMALIZED}) -> {FEATURES}",
        f"%xt{layer} = stablehlo.transpose %x{layer}, dims = [1, 0] : ({ROWS}) -> {turned}",
        f"%dw{layer} = stablehlo.dot %xt{layer}, %k{layer} : ({turned}, {ROWS}) -> {WEIGHTS}",
        f"%wt{layer} = stablehlo.transpose %w{layer}, dims = [1, 0] : ({WEIGHTS}) -> {WEIGHTS}",
        f"%g{layer} = stablehlo.dot %k{layer}, %wt{layer} : ({ROWS}, {WEIGHTS}) -> {ROWS}",
    ]
