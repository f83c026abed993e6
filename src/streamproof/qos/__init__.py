"""Quality of service: admission with proven bounds, deadlines, and schedulers that keep them."""
