"""Event-driven queries: as data (`query`), and as plans of other nodes (`lowering`)."""
