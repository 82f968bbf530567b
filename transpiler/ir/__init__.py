"""The intermediate representation: structured, functional, typed."""
