"""Facts about operations that need no terms: their parts, and which of them are pure."""
