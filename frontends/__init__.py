"""How a framework's users come in: each package wraps one framework, and is imported when it is first used."""
