"""The signal of a compiled entry whose assumptions do not hold for the arguments at hand."""


class Miss(Exception):
    """Raised before any work is done: another specialisation is needed."""
