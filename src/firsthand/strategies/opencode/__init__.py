"""OpenCode: a summary and a recent tail, in its two engines, and the prune."""
