"""What users ask for, as data: parsed and validated at the edge, passed whole."""
