"""The training container: one job spec in, one verified LoRA adapter out."""

__version__ = "0.1.0"
