"""Strategies: one file each; `contract` is all that they share with whoever runs them."""
