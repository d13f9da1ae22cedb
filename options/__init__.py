"""The options of users, as data: parsed and validated at the edge, passed whole."""
