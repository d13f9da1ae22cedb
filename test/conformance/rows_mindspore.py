"""The 45 behaviours of MindSpore's recomputation, actual or desirable, that this project is tested for."""

from __future__ import annotations

MINDSPORE = """
an operation is marked by an attribute, true or false, which is checked | must
a mark on a segment holds for everything in it, nested scopes included | must
a mark on an operation takes precedence over its segment; the kept value splits the segment, gradients equal | must
all outputs of a segment are kept, regardless of the operations between them and their readers | must
outputs of segments can be recomputed too, with one gate per segment: ten chained cells stay below half the peak | must
a segment of one operation, its output, stays unchanged, with a remark | must
only operations that the gradient reads, and their operands, are copied, not the tail of a segment | must
a forward value that no gradient needs is not copied: the second matmul of the tutorial | must
a forward operation that only the gradient needs is moved, not run twice | define
one copy per segment and operation, however many gradient operations read it | must
no gradient operation reads a forward value that should be recomputed: the verifier names the reader | must
each gate is the gradient that arrives at the segment, and never empty: ten cells sin, exp, cos, tanh | must
where no gradient has arrived, as in the last cell, there is no empty gate: it stays unchanged, with a remark | must
every root waits: those that read arguments or constants, and those without operands | must
a gate never depends on the copies that wait for it | must
segments are recomputed one after the other: each gate depends on the gradients of the following segment | must
an explicit token, not an identity: it survives canonicalization and CSE | must
no CSE merges a copy with its original, even if run repeatedly | must
the cleanup merges twin copies of one segment | must
the cleanup merges twin originals, and one segment has one token | must
twins inside and outside a segment before the pass: a defined result | define
originals without readers are removed | must
running the pass twice changes nothing | must
ids are numbered per module: compiling twice gives the same bytes | must
parameters and constants are shared with the copies, never copied | must
a parameter that changes after the segment: copies read the old value | must
a counter or an assignment inside a segment runs once | must
output inside a segment is written once | must
running statistics are updated once: the copy has no effect on them | must
dropout with an explicit key: the mask is the same; without a key it is saved | must
random numbers from a given state may be copied | must
an operation with several results is copied once for all of them | must
recomputing collectives can be switched on and off; a copy has a channel of its own | must
sends and receives are never copied | must
control flow inside a segment is copied as a whole, or refused with a reason | must
nested segments: the inner boundaries hold; marking again changes nothing | must
a body that is called twice is two segments with two gates | must
a skip connection between segments: each segment has its own gate and copies only its own operations | must
gradients are equal bit for bit, over five steps of training too; gradients of gradients work | must
a report for each segment: copies, gate, bytes, FLOPs, the reason; strict mode makes "no effect" an error | must
misuse is a typed error: the error for an unknown option lists the valid options | must
an unmarked view between marked operations does not undo the saving | must
a module without a gradient stays unchanged, and a message says that it has none | must
an expensive operation inside a segment can be kept: one matmul runs once, all others are recomputed | must
the peak falls to the bytes of the kept values, in program order and for executors that start operations early | must
"""
