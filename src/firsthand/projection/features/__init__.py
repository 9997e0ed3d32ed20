"""What `coverage` needs to know of an entry, computed once when the entry is appended: its units, their sizes, and the terms in them.

`units` cuts texts into lines and sentences, `terms` finds the informative terms of a word, `rows` brings both into the bytes that a journal
stores. Nothing here depends on another entry, a budget or a counter.
"""
