"""OpenCode's storage objects, exports and databases."""
