"""Parts that strategies share: plans, boundaries, originals, evidence, rendering, repair."""
