"""Pi's session files, and those of its fork."""
