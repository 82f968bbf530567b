"""Source in, source out: reads NumPy functions, differentiates and batches them, and writes Python."""
