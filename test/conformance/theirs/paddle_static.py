"""Small static programs for Paddle's `RecomputeOptimizer`, which run in Paddle's own environment."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import static
from paddle.incubate.optimizer import RecomputeOptimizer

BATCH = 16


def linear(x, width, activation=None):
    return static.nn.fc(x, width, activation=activation)


def layers(between):
    """Return the builder of 4 x (fc + relu + `between`), fc, mean square error, with checkpoints after layers 0 and
    2."""

    def build(x, label):
        held = []
        for _ in range(4):
            x = between(F.relu(linear(x, 8)))
            held.append(x)
        return paddle.mean(paddle.square(linear(x, 1) - label)), [held[0], held[2]]

    return build


def branches(x, label):
    """Return the loss of two parallel branches of two layers, whose ends are the checkpoints."""
    left = linear(linear(x, 8, "tanh"), 8, "tanh")
    right = linear(linear(x, 8, "tanh"), 8, "tanh")
    return paddle.mean(paddle.square(linear(left + right, 1) - label)), [left, right]


def mlp(x, label):
    """Return the loss of the example of `RecomputeOptimizer`: fc, fc with softmax, cross entropy; both are
    checkpoints."""
    hidden = linear(x, 128)
    prediction = linear(hidden, 2, "softmax")
    cost = F.cross_entropy(prediction, label, use_softmax=False, reduction="none")
    return paddle.mean(cost), [hidden, prediction]


NETS = {
    "mlp": mlp,
    "layers": layers(lambda x: x),
    "layers_dropout": layers(lambda x: F.dropout(x, 0.5)),
    "gumbel": layers(lambda x: F.gumbel_softmax(x)),
    "rrelu": layers(lambda x: F.rrelu(x - 0.5)),
    "static_batch_norm": layers(lambda x: static.nn.batch_norm(x)),
    "branches": branches,
}


def run(name, recomputed):
    """Run one step; return the program, its initial parameters, loss, gradients and new parameters."""
    paddle.enable_static()
    main, startup = static.Program(), static.Program()
    main.random_seed = startup.random_seed = 7
    with static.program_guard(main, startup), paddle.utils.unique_name.guard():
        feed = feeds(name)
        x, label = (static.data(key, list(value.shape), str(value.dtype)) for key, value in feed.items())
        loss, checkpoints = NETS[name](x, label)
        optimizer = paddle.optimizer.SGD(0.1)
        if recomputed:
            optimizer = RecomputeOptimizer(optimizer)
            optimizer._set_checkpoints(checkpoints)
        _, pairs = optimizer.minimize(loss)
    executor = static.Executor(paddle.CPUPlace())
    executor.run(startup)
    persistent = [p.name for p in main.all_parameters()]
    before = {name: held(name) for name in persistent}
    trained = [p.name for p, _ in pairs]
    # The noise of the forward pass is then the same with and without recomputation.
    paddle.seed(11)
    fetched = executor.run(main, feed, fetch_list=[loss, *(g for _, g in pairs)])
    after = {name: held(name) for name in persistent}
    return main, trained, feed, before, fetched, after


def feeds(name):
    """Return inputs and targets; for the documented example the targets are classes."""
    generator = np.random.default_rng(0)
    if name == "mlp":
        return {"x": generator.random((32, 32), np.float32), "label": generator.integers(0, 2, (32, 1))}
    return {key: generator.normal(size=(BATCH, size)).astype(np.float32) for key, size in (("x", 8), ("label", 1))}


def held(name):
    return np.array(static.global_scope().find_var(name).get_tensor())


def is_temporary(block, name):
    return block.has_var(name) and not block.var(name).persistable and not block.var(name).is_data


def counts(program):
    """Return the number of copies, and the forward values that the backward pass reads, by value and by bytes."""
    block = program.global_block()
    roles = [op.attr("op_role") for op in block.ops]
    start = next(index for index, role in enumerate(roles) if role & 1)
    ops = [(op.type, op.input_arg_names, op.output_arg_names) for op in block.ops]
    names = {name for _, _, out in ops[:start] for name in out if is_temporary(block, name)}
    read = {name for (_, into, _) in ops[start:] for name in into}
    copies = [
        kind
        for (kind, _, out), role in zip(ops, roles, strict=True)
        if role & 1 and any(".subprog_" in name for name in out)
    ]
    return {"clones": len(copies), "held": len(names & read), "peak_bytes": peak_bytes(block, ops), "cloned": copies}


def peak_bytes(block, ops):
    """Return the peak of the temporaries in textual order, without parameter gradients."""
    spans = {}
    for index, (_, into, out) in enumerate(ops):
        for name in (*into, *out):
            if is_temporary(block, name) and not ends_at_a_parameter(block, name):
                first, _ = spans.get(name, (index, index))
                spans[name] = (first, index)
    live = [0] * len(ops)
    for name, (first, last) in spans.items():
        size = 4 * int(np.prod([abs(side) for side in block.var(name).shape]))
        for index in range(first, last + 1):
            live[index] += size
    return max(live)


def ends_at_a_parameter(block, name):
    base = name.split("@GRAD")[0]
    return "@GRAD" in name and block.has_var(base) and block.var(base).persistable
