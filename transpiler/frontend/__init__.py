"""From a Python function to IR, by abstract interpretation of its source."""
