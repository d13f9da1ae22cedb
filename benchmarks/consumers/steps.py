"""Import all modules with steps, which fills the table `CASES`."""

from . import arithmetic, control, devices, effects, structure
from .case import CASES

__all__ = ["CASES", "arithmetic", "control", "devices", "effects", "structure"]
