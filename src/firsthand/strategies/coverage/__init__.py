"""`coverage`: the verbatim units that together show most of what a session is likely to need again, for the tokens there are."""
