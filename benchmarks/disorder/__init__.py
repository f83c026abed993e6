"""The out-of-order benchmark: engines over streams with a known disorder."""
