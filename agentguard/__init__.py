"""Checks every tool call of an agent as it happens, and scores whole trajectories afterwards."""

__version__ = "0.1.0"
