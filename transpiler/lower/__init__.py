"""From tensor operations to loop nests."""
