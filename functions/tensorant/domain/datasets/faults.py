"""How a rule says no to a row."""

from __future__ import annotations


class RowError(Exception):
    """The row is refused: its field, why, and the mend. The line is known where the rows are counted."""

    def __init__(self, field: str, message: str, mend: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message
        self.mend = mend
