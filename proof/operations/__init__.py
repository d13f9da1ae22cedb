"""Facts about operations that the proof reads before it builds terms: their parts, and whether they are pure."""
