"""Temporal streaming queries on Spark, and the workbench that proves them right."""
