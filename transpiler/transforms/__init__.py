"""IR to IR: forward mode, reverse mode, batching."""
