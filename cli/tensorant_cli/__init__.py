"""The command line: a client of the HTTPS API, and of nothing else."""
