"""Kernels of event-driven queries: what makes events happen, what pairs them, and what is seen meanwhile."""
