"""Batch mode: a plan over complete histories, as native DataFrame code."""
