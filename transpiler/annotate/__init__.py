"""What a derivative does with each line of the user's source, as facts that the passes tell."""
