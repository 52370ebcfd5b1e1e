"""The `trajectory` fixture for tests of agents."""
