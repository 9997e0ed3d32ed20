"""Recall: a bounded block of lines from omitted history that the newest message asks for. No model, no clock, no randomness."""

from .memory import recall_over

__all__ = ["recall_over"]
