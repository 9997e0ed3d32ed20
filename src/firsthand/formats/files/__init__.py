"""Readers of session files, one file per format."""
