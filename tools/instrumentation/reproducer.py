"""Reproducers in the format of `mlir-opt`: one file that contains a module and the pipeline to run on it.

The pipeline is in a section at the end of the file:

    {-#
      external_resources: {
        mlir_reproducer: {
          pipeline: "builtin.module(recompute-mark,recompute-clone)",
          disable_threading: true,
          verify_each: true
        }
      }
    #-}
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...driver.pipelines.scheduled_pass import ScheduledPass, pipeline_text

_SECTION = """
{{-#
  external_resources: {{
    mlir_reproducer: {{
      pipeline: "{pipeline}",
      disable_threading: true,
      verify_each: {verify_each}
    }}
  }}
#-}}
"""
_PIPELINE = re.compile(r'mlir_reproducer\s*:\s*\{[^{}"]*\bpipeline\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)")


def reproducer(module: str, passes: Sequence[ScheduledPass], verify_each: bool) -> str:
    """Return the text of a reproducer.

    Args:
        module: The text of the module before the passes.
        passes: The passes to run.
        verify_each: Whether the module is verified after each pass.
    """
    pipeline = re.sub(r'["\\]', r"\\\g<0>", pipeline_text(tuple(passes)))
    return module + _SECTION.format(pipeline=pipeline, verify_each=str(verify_each).lower())


def pipeline_in(text: str) -> str | None:
    """Return the pipeline that a reproducer contains; None if the text has no reproducer section."""
    match = _PIPELINE.search(text)
    return None if match is None else _ESCAPED.sub(r"\1", match[1])
