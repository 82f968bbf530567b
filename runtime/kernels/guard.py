"""The signal of a compiled entry whose assumptions do not hold for the arguments at hand."""


class Miss(Exception):
    """Raised before any work is done: another specialisation is needed."""

    def __str__(self) -> str:
        """Only callers that are compiled by Numba ever see it."""
        return ("the arrays do not have sizes that this call was compiled for: some that it took for equal differ, or "
                "an axis has a length of 0 or 1")
