"""Orders of a step with a low peak; `schedule.py` compares them."""
