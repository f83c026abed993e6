"""What a plan means, by definition, in loops over lists: an oracle that shares no code with any engine."""
