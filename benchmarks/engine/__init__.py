"""The engine benchmark: the same queries over the same rows, by us and by named peers, each in its own process."""
