"""The `gradsmith` command.  One command a file; what they share is below them.

    main      the command and its errors       build show check ops explain doctor cache    one command each
    target    FILE.py:FUNC                      transform  grad(vmap)
    parameters, chain, generate, finish         from those to the text of a module
    project   [tool.gradsmith]                  console    colours and messages

Importing this package, and `gradsmith --help`, load none of the machinery: commands import it when they run.
"""
