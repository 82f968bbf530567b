"""What `gradsmith.random` is made of.

The functions are ordinary Python over NumPy, which runs as it is and is interpreted inside transpiled functions, where
the few that look at Python objects (`checks.py`) or need a compiled formula (`elements.py`) have others in their
places.
"""
