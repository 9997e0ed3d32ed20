"""OpenHands' event histories."""
