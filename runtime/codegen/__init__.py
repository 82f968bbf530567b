"""Machine code from generated text without Numba's front end.

The text of a generated function is a small part of Python, fully typed by its arguments.  `compile_text` writes LLVM
for it directly, in Numba's own terms (types, array structures, calling convention, reference counts), so that what
comes out is an overload like any other.  What the text may not contain raises `NotCovered`, and Numba compiles it.

    source      the function's tree, and which names need a place in memory
    values      what an expression gives: a type and LLVM values
    numbers     arithmetic, comparisons and casts of numbers, as Numba does them
    arrays      elements, shapes, allocation
    calls       kernels of ours, conversions, and whatever Numba can type and compile by itself
    expressions, statements
    library     optimise, load, and make the overload
"""
