"""Call the search and apply its choices: the stages of a rewrite, and the passes that choose."""
