"""Train a masked language model of `transformers`, built from a configuration without any download.

    python examples/torch/bert.py [--budget 60%]

The script needs `pip install 'xdsl-recompute[torch]' transformers`. With the Trainer of `transformers`,
compile only the forward pass: `model.forward = rt.compile(model.forward, budget=...)`.
"""

from __future__ import annotations

import argparse

import torch
from transformers import BertConfig, BertForMaskedLM

SMALL = dict(
    hidden_size=128,
    num_hidden_layers=4,
    num_attention_heads=4,
    intermediate_size=512,
    vocab_size=512,
    max_position_embeddings=128,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    budget = "the memory budget: bytes of the device, such as 8GiB, or a share of the plain step's peak"
    parser.add_argument("--budget", default="60%", help=budget)
    budget = parser.parse_args().budget

    import recompute.torch as rt

    torch.manual_seed(0)
    model = BertForMaskedLM(BertConfig(**SMALL)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = rt.compile(model, budget=budget)  # was: torch.compile(model)
    tokens = torch.randint(512, (8, 64))
    for _ in range(3):
        optimizer.zero_grad()
        loss = step(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}")
    print(step.report())


if __name__ == "__main__":
    main()
