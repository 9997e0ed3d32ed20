"""What a provider's refusal means: one table of error shapes, and how an answer is told from it."""
