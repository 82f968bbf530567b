"""`python -m gradsmith.cli`."""

from gradsmith.cli.main import main

main()
