"""Compute on EC2, with the credentials of a connection."""
