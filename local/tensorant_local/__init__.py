"""The embedded cloud: the deployed template, run on this machine."""
