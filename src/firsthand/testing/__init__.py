"""For tests, ours and yours: builders that keep a history on one line, random entries, and a validator of request messages."""
