"""One file per contestant; each runs in its own process, with the Python that its dependencies want."""
