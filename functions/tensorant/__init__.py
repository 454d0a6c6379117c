"""Tensorant: rent one GPU, train one adapter, prove the machine is gone."""
