"""Gemini CLI's documents and logs."""
