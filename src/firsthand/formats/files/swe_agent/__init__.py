"""SWE-agent's and mini-swe-agent's trajectories."""
