"""Loops over elements as operations on whole arrays."""
