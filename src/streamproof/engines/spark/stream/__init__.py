"""Stream mode: plans on Structured Streaming, over kernels that live in buckets of state."""
