"""FutureOS: originals first, an index of tool evidence, a recent tail, and optionally a handoff summary."""
