"""Reports on a step: memory and FLOPs, plain and recomputed, as text and as a page."""
