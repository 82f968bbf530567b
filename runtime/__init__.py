"""gradsmith: a source-to-source differentiating transpiler for Python and NumPy."""

__version__ = "0.1.0"
