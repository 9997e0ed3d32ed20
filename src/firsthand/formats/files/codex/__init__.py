"""Codex's rollout files."""
