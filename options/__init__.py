"""The options of users as data, parsed and validated once, and passed whole."""
