"""The operation table: one entry an operation, holding all of its rules."""
