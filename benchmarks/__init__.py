"""Benchmarks: ratios between two pieces of work, never seconds."""
