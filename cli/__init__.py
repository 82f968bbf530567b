"""The gradsmith command."""
