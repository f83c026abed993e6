"""A second meaning of plans: pure Python, straight from the definitions, slow and obvious. It judges the oracle."""
