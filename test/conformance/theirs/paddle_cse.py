"""Count copies before and after Paddle's CSE. Runs in Paddle's own environment; see `paddle_run.py`."""

import paddle
from paddle import nn, static
from paddle.distributed.fleet.utils import recompute
from paddle.distributed.passes import new_pass


def copies(program):
    return sum(op.has_attr("bwd_recompute_id") for op in program.global_block().ops)


def copies_before_and_after():
    """Return the copies of two blocks of fc, tanh, fc, tanh after Paddle's own recompute pass, and after its CSE."""
    paddle.enable_static()
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [4, 8])
        for _ in range(2):
            x = recompute(nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh()), x)
        loss = paddle.mean(x)
        forward = len(main.global_block().ops)
        paddle.autograd.ir_backward.append_backward(loss)
        for index, op in enumerate(main.global_block().ops):
            op.op_role = int(index >= forward)
        new_pass("auto_parallel_recompute_pir", {"refined_ops_patterns": []}).apply([main], [startup])
        before = copies(main)
        manager = paddle.pir.PassManager()
        manager.add_pass("common_subexpression_elimination_pass", {})
        manager.run(main)
    return before, copies(main)
