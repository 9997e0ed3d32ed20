"""Codex: recent user messages, and a summary or what stands in for one."""
