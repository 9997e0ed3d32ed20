"""Pi: a summary with file lists and a recent tail, cut where Pi cuts."""
