"""What a run of the tests leaves out unless it is told `--whole`: products of which a part says nearly as much.

`make test` says how many it has deselected; `make test-whole` runs them too.
"""

from __future__ import annotations

import re

LEFT_OUT = {
    "an example that another one contains": (
        r"unit/(analysis|planning|transforms|dialects|interpreters)/.*\[(gpt|gpt_bf16|paddle_fleet|mindspore_attention)\.small"
    ),
    "a plan on paper without barriers, but for the first way": r"test_rewriting\.py.*-none\]",
    "the longest of several, where the others say nearly as much": r"test_curves_go_one_way\[(unet|densenet)"
    r"|test_the_network_in_the_size_of_the_page|test_it_runs\[marks_and_policies|test_it_trains_in_less_memory\[equinox"
    r"|test_examples_by_the_model_of_xla\[tied|test_at_the_same_blocks\[(moe|gpt)|test_shard_map.py.*\[more"
    r"|test_as_little_as_with_checkpoint_around_the_body\[(with_keys_rbg|with_condition|in_one_another|counted)",
    "said of smaller steps too": r"test_shardings_on_a_mesh|test_ours_and_checkpoint_have_the_same_bits"
    r"|test_the_same_bytes_twice_and_in_two_processes|test_the_network_of_the_fleet_page|test_peers\.py::test_results$"
    r"|test_the_same_noise_twice\[.*-(PRNGKey|rbg)|test_results_in_bf16_are_near|\[vision_transformer\]"
    r"|test_steps_go_one_way\[(branches|unet|gpt_bf16|mindspore_attention|mlp20|resnet)|test_the_net_of_the_tutorial",
    "the same again at other seeds, sizes and switches": r"test_what_is_promised_of_every_program\[(40|80)"
    r"|as_near_to_the_truth_as_those_of_jax\[gpt\]|test_switches_for_several_devices|test_bridge\.py::test_examples\[.*(large|checkpoint)",
    "sizes of batches and numbers of segments in between": r"test_any_size_of_batch_and_number.*\[[2-5]-",
}
KEPT = r"as it is chosen-none\]|test_choose\.py"


def is_left_out(nodeid: str) -> bool:
    return any(re.search(one, nodeid) for one in LEFT_OUT.values()) and not re.search(KEPT, nodeid)
