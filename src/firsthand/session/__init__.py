"""The runtime of a session: occupancy, compaction, and recovery when a provider refuses a request as too large."""
