"""Claude Code's session files: JSON lines, one tree per file."""
