"""The workbench: say what to test, and get proof or a minimal counterexample."""
