"""Provider message formats, one file per wire API."""
