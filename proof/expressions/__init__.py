"""Terms, the expressions that represent values, with their conditions and simplifications."""
