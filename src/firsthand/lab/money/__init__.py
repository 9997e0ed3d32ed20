"""What compactions cost: price tables, the arithmetic of cached and cold reading, and the published figures checked by it."""
