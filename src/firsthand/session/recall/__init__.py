"""Recall: a bounded block of lines from omitted history that the newest message asks for. No model, no clock, no randomness.

The core is pure: `pieces` (what a message asks for), `ranking` (which lines answer), `block` (how they are shown). It works over a list of
entries in memory (`recall_over`) and over the journal (`recall_stored`).
"""

from .memory import Recallable, recall_over
from .stored import recall_stored

__all__ = ["Recallable", "recall_over", "recall_stored"]
