"""Benchmarks: each module's `table()` measures against a floor of the same run and returns what to print."""
