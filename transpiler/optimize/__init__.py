"""Passes that make IR smaller and cheaper without changing its meaning."""
