"""Schema migrations of the journal, run by `firsthand.journal.connection` when a file is opened; never by hand."""
