"""Exams: questions whose answers are known to be in the covered history, one file per exam (measures.md)."""
