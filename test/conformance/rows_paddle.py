"""The 50 behaviours of Paddle's five implementations, actual or desirable, that this project is tested for."""

from __future__ import annotations

PADDLE = """
checkpoints make segments: mul, add, add, mean gives exactly the documented copies | parity
the operations before the first checkpoint are a segment, too | parity
the operations after the last checkpoint are not recomputed | parity
the order of checkpoints does not matter, nor do duplicates | parity
one checkpoint, or the result of the first operation, follow the same rule; a remark if nothing is recomputed | better
no checkpoint, or none that helps: the step stays as it is, with a remark | parity
a checkpoint that does not lead to the loss gives a warning at its position; the others still apply | better
an argument, a parameter or a value of another block as a checkpoint: an error or a warning that names it | better
parallel branches by data flow, not by ranges of operations: both are recomputed | better
a value that crosses a segment is saved, and named in the report | parity
segments of one operation are recomputed, or stay unchanged with a reason | better
only operations that the gradient reads are copied: 3 copies where Paddle makes 7 | better
the operation that defines a checkpoint is not copied | parity
an operation with several results, one of them a checkpoint: the copy does not make the checkpoint again | better
a value of which a gradient reads only the shape is not recomputed for it | better
no gradient operation reads a forward value that is not saved | parity
marks survive printing and parsing | parity
no copy can run before the gradient arrives: 32 layers under an eager schedule | better
every root of a segment waits, not only the first | better
CSE does not merge copies with originals | better
CSE may merge duplicate copies of one segment; a segment without copies has no token | better
canonicalization and dead code elimination afterwards: the numbers are the same, the tokens stay | better
dropout: gradient and value see the same mask | parity
every random operation, not only dropout: gumbel, rrelu, bernoulli give the gradients of the plain step | better
recomputing does not change the stream of random numbers of the forward pass | better
a random operation without a state is kept, never copied | better
the random state that the step returns is the same with and without | parity
drawing other random numbers in the recomputation, on request | parity
operations with state or effects are never copied | better
integer results are recomputed where they come from pure operations | better
operations with regions inside a segment are copied whole | better
nothing is copied for unused gradients | better
the operations before a value without gradient are not recomputed | parity
inputs without gradient, parameters with: the parameters get theirs | better
several results of a segment, some without gradient | better
nested segments | better
the same function marked twice is two segments | better
operations that read or write memory are not copied | better
running the pass twice changes nothing; each function with a gradient is treated | better
operations are kept by patterns along the data flow, with a limit on their number, and by attribute | parity
segments can be left out by number; a number that does not exist is an error | parity
a minimum cut chooses, with weights and operations that are never recomputed | parity
values computed only from constants are recomputed, not saved | parity
the copies of a group stand right before the first operation that reads one of them | parity
offloading: a mark that keeps a value for a tool that moves it to the host, relu's own gradient included | better
a sequence of stages is split into k segments; k beyond their number is an error | better
statistics: forward, backward, copied operations, saved bytes, crossing values | parity
casts of parameters travel with their segment | parity
the last segment, whose values are needed at once, is not recomputed | better
the peak of live bytes falls, under an adversarial schedule, too | better
"""
