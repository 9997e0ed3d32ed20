"""Session files and wire formats: the outside world on one side, entries on the other."""
