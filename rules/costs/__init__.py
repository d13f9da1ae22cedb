"""Cost models for the execution of an operation: FLOPs, bytes, time on a device, or costs from a file."""
