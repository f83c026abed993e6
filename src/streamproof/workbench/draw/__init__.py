"""Drawing at random: expressions, windows, operators, plans and streams, from a source of choices."""
