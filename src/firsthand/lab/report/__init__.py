"""The report: what was measured, as rows that are kept, as tables, and as one page that needs nothing else."""
