"""Reports on the memory and FLOPs of a step, plain and rewritten, as text or as a page."""
