"""A model as reader: questions about a projection, put to an endpoint within a budget, and replies that are judged strictly."""
