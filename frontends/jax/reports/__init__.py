"""Reports on a step: what it needs, plain and recomputed, as text and as a page."""
