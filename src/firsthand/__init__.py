"""firsthand: context compaction for LLM agents that keeps the originals."""

__version__ = "0.1.0"
