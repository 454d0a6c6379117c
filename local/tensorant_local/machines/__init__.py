"""Simulated EC2 hosts: each boots its real user data under a root folder of its own, without Docker or a GPU."""
