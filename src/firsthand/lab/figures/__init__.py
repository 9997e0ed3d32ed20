"""Figures of the lab: SVG, PNG or PDF, told apart by hatches and markers and not by colours alone."""
