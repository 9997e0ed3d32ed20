"""A model-written summary: the request for it, and what is accepted as an answer."""
