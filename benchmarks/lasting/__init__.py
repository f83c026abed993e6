"""The sharing algorithms of lasting events, tuple by tuple, and the time-bounded query on peers."""
