"""Configuration of the lit suite, in which every `.mlir` file below this folder is a test. lit defines `config`."""

import os
import sys
from pathlib import Path

import lit.formats

HERE = Path(__file__).resolve().parent

config.name = "recompute"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(HERE)
config.test_exec_root = str(HERE.parents[1] / "build" / "lit")
# recompute-opt and filecheck live beside the interpreter that runs lit.
config.environment["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))
# lit drops the environment; a checkout that is not installed is found by this path.
if "PYTHONPATH" in os.environ:
    config.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
