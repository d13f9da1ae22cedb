"""What one execution of an operation costs: FLOPs, bytes, time on a device, or what a file says."""
