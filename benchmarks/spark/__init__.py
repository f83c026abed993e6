"""The engine on Spark beside Spark itself."""
