"""Every error code, with its title, the builtin exception that it also is, and the page `gradsmith explain` prints.

E1xx source and syntax · E2xx operations and their rules · E3xx shapes, types and indices · E4xx differentiation and
batching · E5xx signatures and the command line · E6xx caches and run time.
"""

from dataclasses import dataclass

from numpy.exceptions import AxisError


@dataclass(frozen=True)
class ErrorCode:
    code: str
    title: str
    kind: type[Exception] | None  # what `except` clauses for NumPy or Python code would name
    explanation: str  # Markdown

    @property
    def page(self) -> str:
        return f"# {self.code}: {self.title}\n\n{self.explanation}\n"


ERROR_CODES: dict[str, ErrorCode] = {}


def default_kind(code: str) -> type[Exception] | None:
    entry = ERROR_CODES.get(code)
    return entry.kind if entry else None


def _code(code: str, title: str, kind: type[Exception] | None, explanation: str) -> None:
    if code in ERROR_CODES:
        raise ValueError(f"{code} is declared twice")
    ERROR_CODES[code] = ErrorCode(code, title, kind, explanation.strip())


# --- E1xx: source and syntax -------------------------------------------------------------------------------------

_code("E101", "The source of a function cannot be found", OSError, """
gradsmith reads source text, so it needs the text that a function was made from. Python keeps it for functions in
files, in IPython cells and, from 3.13 on, in the interactive prompt; not for text given to `exec` or `python -c`.

Put the function in a file, or give its text yourself: `gradsmith.jit(f, source=text)`.
""")
_code("E102", "The source was edited after the function was made", OSError, """
The text found in the file is not what the running function was compiled from: the file was edited after it was
imported. A derivative of the new text would not be a derivative of the function that runs, so none is made.

Import the module again (`importlib.reload`), or restart the process.
""")
_code("E103", "The source text does not hold the function", ValueError, """
The text given with `source=` has no function that compiles to the same code. Give the text of the definition
itself, with its decorators and default values, as it stood when the function was made.
""")
_code("E104", "Not a function written in Python", TypeError, """
Only functions with Python source can be read: `def`, `lambda` and methods. A builtin, a class or a compiled
extension function has none. Write in NumPy what it does, or call it outside of the transpiled
function and pass in its result.
""")
_code("E105", "The source cannot be parsed", ValueError, """
The text given with `source=` or the file named on the command line is not valid Python. The caret is where Python's
own parser stopped.
""")
_code("E110", "A statement that is not supported", NotImplementedError, """
The statement has no meaning that can be differentiated or compiled: `class`, `async`, `with` of anything but
`np.errstate`, and the like inside a transpiled function. Move it out of the function and pass in what it made. `try`
catches what is raised in every run; an exception that some runs raise and others do not cannot be caught inside the
function, be it raised by `raise` or by an operation, such as the LinAlgError of a singular matrix, nor may a `finally`
with effects follow it: test for it with `if`, or catch it outside. An iterator that only some trips or
branches take from cannot be gone on with: index what it goes over.
""")
_code("E111", "An expression that is not supported", NotImplementedError, """
The expression has no meaning that can be differentiated or compiled, such as `await` or `yield`. Compute its value
outside the function and pass it in. Functions and iterators that are made inside cannot be returned.
""")
_code("E112", "Generators and coroutines are not supported", TypeError, """
A function with `yield` or `async` is run in pieces by its caller, which a compiled function cannot be. Return a
list or an array of what it would have yielded.
""")
_code("E114", "A name that is not defined", NameError, """
The name is neither a local variable, nor one of an enclosing function, nor a global, nor a builtin.
""")
_code("E115", "A variable that may have no value yet", UnboundLocalError, """
On some way through the function the variable is read before it is assigned, for example when only one branch of an
`if` on a run-time value sets it. Give it a value before the branch.
""")
_code("E116", "An attribute that does not exist", AttributeError, """
The object has no such attribute. For names in NumPy and SciPy see E201.
""")
_code("E117", "A value is needed while transpiling", TypeError, """
Some things must be known before the code runs: an axis, a dtype, the number of dimensions, the length of a tuple,
which function is called. The value here is known only at run time. Pass it as a static argument
(`static_argnums`), or write it as a literal.
""")
_code("E118", "A call with the wrong arguments", TypeError, """
An argument is missing, unexpected or given twice, as Python itself would say.
""")
_code("E119", "An assertion fails", AssertionError, """
The condition of this `assert` is known while transpiling, and it is false.
""")
_code("E120", "The function raises an exception", None, """
For these arguments the function always reaches this `raise`.
""")
_code("E121", "The branches of an `if` do not fit together", TypeError, """
When a condition is known only at run time, a variable must have the same type and structure after both branches,
since compiled code has one type for each variable. For example one branch leaves an array and the other a tuple.

Make them alike, or make the condition static (`static_argnums`).
""")
_code("E122", "A variable changes its type in a loop", TypeError, """
A loop that runs when the function runs, since its number of trips or its condition is known only then, carries
variables from one trip to the next. These must keep their type, shape and structure.

    total = 0.0             # a number, then an array
    for i in range(len(x)):
        total = total + x[i]

Start it with a value of the type that it will have: `total = np.zeros_like(x[0])`. Lists may grow: their elements must
be alike, numbers of one kind, arrays of one shape, or tuples, lists, dicts and objects of such. How much a `while` or
nested loops append is found by running them ahead, where only the latest elements (`values[-1]`) can be read. Loops
over a number of trips that is known while transpiling are unrolled where they need it, and may change anything.
""")
_code("E123", "A name that may mean two arrays is written to", ValueError, """
After a run-time `if`, one name may refer to one array or to another, and then it is written in place. Which of the
two changes is known only at run time. Write to each in its own branch, or copy first: `b = np.where(c, x, y)`.
""")
_code("E124", "A write to an array that must not change", ValueError, """
The array belongs to the surroundings of a function under a transform, which has effects on nothing. Pass it as an
argument, write to a copy, or use `gradsmith.functional`, which returns what a function wrote.
""")
_code("E125", "Unrolling does not end", RecursionError, """
A loop or a recursion that is decided while transpiling goes on for too many steps, or a recursive function calls itself
on every way through it. A loop over very many steps stays a loop in the generated code if its bound is a run-time
value, and so does a recursion that a run-time value ends.
""")
_code("E126", "A side effect that is not supported", NotImplementedError, """
Appending to a list from outside, rebinding a global or printing to a file has an effect beyond arguments and results.
Return the value instead.

Calls of libraries whose arguments are all known are done while transpiling, even in a branch that no run takes. So only
what is known to do nothing but compute may be called: numbers, texts and containers, NumPy and SciPy but for files,
options and random numbers, and modules like `math`, `itertools` and `re`. Files, processes, warnings and logging belong
outside of the function. `print` is supported.
""")
_code("E127", "Arguments that share memory, one of which is written to", ValueError, """
A function that writes to an array may get the same array twice, and then both arguments are that array. Views that
overlap in part, an array that a global refers to, too, and arrays whose own elements share memory are refused: which
writes the function would see depends on where they overlap. Pass a copy of one of them.
""")
_code("E128", "A write to a read-only array", ValueError, """
NumPy's own error: the caller's array is read-only, or it is a broadcast array or a diagonal. Write to a copy.
""")
_code("E130", "A recursion whose types do not settle", TypeError, """
A recursive function whose depth is known only when it runs is compiled as one function: what it takes and gives must
have one type, structure and number of dimensions in all its calls. Sizes of arrays may differ from call to call.

    def f(x, n):
        return x if n == 0 else f([x, x], n - 1)        # a number, then a list of two

Write it so that all calls are alike, or let what ends the recursion be static (`static_argnums`).
""")

# --- E2xx: operations and their rules ----------------------------------------------------------------------------

_code("E201", "No such name in NumPy or SciPy", AttributeError, """
The module has no such function. The message offers the nearest names.
""")
_code("E202", "A function that is not supported", NotImplementedError, """
The function exists but gradsmith has no entry for it. `gradsmith ops` lists all that are supported. Write it in terms
of those, or call it outside and pass in its result.
""")
_code("E203", "An argument that is not supported", NotImplementedError, """
The function is supported, but not with this argument, such as `order=` or `out=`. The message says what to write.
""")
_code("E204", "No reverse-mode rule", NotImplementedError, """
The derivative needs the reverse-mode rule of an operation that has none. Forward mode (`jvp`, `jacfwd`) may have one:
see `gradsmith ops`. If the value should count as a constant, wrap it in `stop_gradient(...)`.
""")
_code("E205", "No forward-mode rule", NotImplementedError, """
The derivative needs the forward-mode rule of an operation that has none. If the value should count as a constant,
wrap it in `stop_gradient(...)`.
""")
_code("E206", "No batching rule", NotImplementedError, """
`vmap` meets an operation that it cannot batch. Call it outside of `vmap`, or loop over the batch.
""")
_code("E207", "An operation that this target lacks", NotImplementedError, """
The operation can be run on the CPU but not on the target that was asked for (CUDA, StableHLO).
""")
_code("E208", "An operation called with wrong arguments", TypeError, """
The call does not fit the signature that NumPy documents for this function.
""")
_code("E209", "A foreign function", TypeError, """
The function is neither NumPy's nor written in Python, so there is no source to differentiate. Write in NumPy what
it does, or call it outside and pass in its result.
""")

# --- E3xx: shapes, types and indices -----------------------------------------------------------------------------

_code("E301", "Shapes that do not broadcast together", ValueError, """
Two operands of an elementwise operation have lengths that differ, and neither is 1. NumPy aligns shapes at their
last axis: `(3, 4)` and `(3,)` do not fit, `(3, 4)` and `(3, 1)` do.
""")
_code("E302", "Shapes that do not fit", ValueError, """
The operation asks its operands to agree in some axes, as a matrix product or `concatenate` does, and they do not.
""")
_code("E303", "An axis out of range", AxisError, """
The array has fewer dimensions than this axis counts. Axes count from 0, negative ones from the end.
""")
_code("E304", "A reshape to another size", ValueError, """
The new shape does not hold as many elements as the array.
""")
_code("E305", "An index out of range", IndexError, """
The index lies outside of the axis that it indexes, as NumPy itself would say.
""")
_code("E306", "Not an index", IndexError, """
Only integers, slices, `...`, `np.newaxis` and integer or boolean arrays are indices, and no more of them than the
array has dimensions.
""")
_code("E307", "A dtype that is not supported", TypeError, """
Arrays hold booleans, integers, floats of 32 or 64 bits, or complex numbers of 64 or 128 bits. float16, longdouble,
strings, objects, dates and records are not supported.
""")
_code("E308", "A cast that would lose values", TypeError, """
An in-place operation keeps the dtype of the array that is written, as in NumPy: `ints += 0.5` is an error.
""")
_code("E309", "Types that the operation does not take", TypeError, """
For example a bit operation on floats, or a comparison of complex numbers.
""")
_code("E310", "The truth value of an array is ambiguous", ValueError, """
`if` and `while` need one boolean. Use `np.any(...)` or `np.all(...)`, or select elementwise with `np.where`.
""")
_code("E311", "A shape that depends on values", TypeError, """
How many elements a result has is known only from values, where that cannot be handled: an index that is a single bool
known at run time, a size that differs from one example of a batch to the next (results must have the same size in all),
or one that is decided in a branch and used behind it. What a mask selects, `x[mask]`, may be sorted, indexed and
returned; for the rest use `np.where(mask, x, 0)`, which has a known shape.
""")
_code("E312", "Not iterable", TypeError, """
A scalar, or an array without dimensions, has no length and no elements to go over.
""")
_code("E313", "The number of dimensions must be known", TypeError, """
The rank of every array is part of its type, but here it depends on a run-time value.
""")
_code("E314", "Unpacking into the wrong number of names", ValueError, """
The left side has more or fewer names than the right side has values.
""")
_code("E315", "A reduction over nothing", ValueError, """
`max`, `min`, `argmax` and the like have no value for zero elements. Pass `initial=`.
""")
_code("E316", "Bad subscripts", ValueError, """
The subscripts of `einsum` do not fit its operands.
""")

# --- E4xx: differentiation and batching --------------------------------------------------------------------------

_code("E401", "An argument that cannot be differentiated", TypeError, """
Integers, booleans and strings have no derivative. Pass a float (`3.0`, or `x.astype(float)`). Leave out of `argnums`
what is not to be differentiated, or let the function read it from outside (a closure, a partial).
""")
_code("E402", "`argnums` out of range", ValueError, """
`argnums` names positional arguments, from 0; negative ones count from the end. An argument that was left out of the
call cannot be named.
""")
_code("E403", "The result is not a scalar", TypeError, """
`grad` is for functions with one real number as result. Reduce the result (`np.sum`), or use `jacrev`,
`jacfwd` or `vjp`. A function without a `return` has no result: if it writes into its arguments,
`gradsmith.functional` makes a function of it that returns what they hold afterwards.
""")
_code("E404", "The result is not a real number", TypeError, """
The result is an integer, a boolean or a complex number, whose gradient is not defined. Cast it to float, or take
its real part.
""")
_code("E405", "`has_aux` without a pair", TypeError, """
With `has_aux=True` the function must return two things: the value to differentiate, and anything else.
""")
_code("E406", "A tangent or cotangent that does not fit", TypeError, """
Tangents have the structure, shapes and dtypes of the arguments; cotangents those of the result.
""")
_code("E407", "`in_axes` or `out_axes` do not fit", ValueError, """
They are an integer, `None`, or a structure that matches the arguments (or the results) from the top.
""")
_code("E408", "Batches of different sizes", ValueError, """
All batched arguments of `vmap` must have the same length along their batch axis.
""")
_code("E409", "A complex argument", TypeError, """
The gradient of a real function of a complex argument needs a convention: ask for it with `holomorphic=True`, or
split the argument into its real and imaginary parts.
""")
_code("E410", "A custom rule returns something else", TypeError, """
Of `f.defvjp(fwd, bwd)`, `fwd` returns a pair: what `f` returns, and residuals; `bwd` a tuple with the cotangent of
each argument that is not in `nondiff_argnums`, None for zero. The rule of `f.defjvp` returns a pair: what `f` returns,
and its tangent. Cotangents have the structure, shapes and dtypes of the arguments, tangents those of the result;
Python's numbers fit any dtype.

The same code is for a mode that does not follow from the rule that was given, since that is not linear: a `bwd` that
clips its cotangent has no forward mode. Give the function both rules.
""")
_code("E411", "A custom rule is missing", AttributeError, """
A function of `custom_vjp` or `custom_jvp` was differentiated before it got its rule: call `f.defvjp(fwd, bwd)` or
`f.defjvp(rule)`. It is also the error for a definition that is not understood: rules that are missing, and options
that do not exist.
""")
_code("E412", "A static argument that cannot be hashed", TypeError, """
Static arguments are part of the key under which compiled code is kept, so they must be hashable: a tuple, not a list.
""")

# --- E5xx: signatures and the command line -----------------------------------------------------------------------

_code("E501", "A signature that cannot be read", ValueError, """
A signature lists the types of the arguments, in either spelling:

    f64[n,m], f32[3,n], i64, f64, bool[n], c128[n]
    float64[:,:], float32[:,::1], int64

Tuples, lists and dicts are written as in Python: `(f64[n], f64)`, `[f64, f64]`, `{w: f64[n,m], b: f64[m]}`. A layout
other than C follows the dimensions: `f64[n,m;F]`, or `;A` for any strides.
""")
_code("E502", "An unknown type in a signature", ValueError, """
Types are `bool`, `i8` to `i64`, `u8` to `u64`, `f32`, `f64`, `c64`, `c128`, NumPy's names for them, and Python's
`int`, `float` and `complex`. float16 is not supported: compute in `f32`.
""")
_code("E503", "A signature of the wrong length", TypeError, """
The signature has more or fewer types than the function has parameters.
""")
_code("E504", "A target that names no function", ValueError, """
A target is `FILE.py:FUNC` or `package.module:FUNC`. The generated function has a name that means nothing else in its
module, which `--name` chooses.
""")
_code("E505", "A file or module that cannot be imported", OSError, """
The target's file does not exist, or it raises an exception when it is imported.
""")
_code("E506", "An unknown transform", ValueError, """
Transforms are written as calls without the function: `grad`, `grad(argnums=(0,1))`, `vmap(in_axes=0)`, and are joined
with a bar or nested from the outside in.
""")
_code("E507", "An unknown stage", ValueError, """
`gradsmith show --at STAGE` stops the pipeline at a named stage. The message lists the stages.
""")
_code("E508", "An argument that does not fit the signature", TypeError, """
The function was built for a signature, and this argument has another dtype, rank or length.
""")
_code("E509", "A bad [tool.gradsmith] table", ValueError, """
The table in `pyproject.toml` lists what `gradsmith build` makes; an entry has a target and may have a transform, a
signature and an output file.
""")
_code("E510", "An output that cannot be written", OSError, """
The file or folder cannot be created or replaced.
""")
_code("E511", "A derivative does not agree", ArithmeticError, """
`gradsmith check` compares a derivative with differences and forward mode with reverse mode. They disagree by more
than their tolerance: at a kink of the function that is to be expected, elsewhere it is a fault in a rule.
""")
_code("E512", "An unknown error code", KeyError, """
There is no page for this code; `gradsmith explain` without a code lists all that there are.
""")
_code("E513", "An unknown format", ValueError, """
`gradsmith annotate --format` is `text` or `html`.
""")

# --- E6xx: caches and run time -----------------------------------------------------------------------------------

_code("E601", "The cache cannot be written", OSError, """
Nothing is kept on disk, and everything else works. Set `GRADSMITH_CACHE_DIR` to a folder that can be written.
""")
_code("E602", "A cache entry is damaged", ValueError, """
The entry was ignored and made anew. `gradsmith cache clear` removes all entries.
""")
_code("E603", "Generated code does not compile", RuntimeError, """
Numba did not accept the code that gradsmith generated. This is a fault in gradsmith; please report it with the
function.
""")
_code("E604", "A device that is not there", RuntimeError, """
No such device was found, or its driver cannot be loaded. `gradsmith doctor` shows what is there.
""")
_code("E605", "A package that is not installed", ImportError, """
This needs an extra: `pip install "gradsmith[cuda]"`, `[xla]`, `[tpu]` or `[fft]`.
""")
_code("E606", "An argument of a type that is not supported", TypeError, """
Arguments are numbers, NumPy arrays, and tuples, lists, dicts and dataclasses of them. Anything else is passed as a
static argument (`static_argnums`).
""")
_code("E610", "A sharding that does not fit", ValueError, """
`gradsmith.sharded` divides arrays among the devices of a mesh, `{"data": 8}` or `{"data": 4, "model": 2}`. A spec says
for each axis of an array which axis of the mesh it is divided along: `"data"` (the first axis), `(None, "model")`,
`(("data", "model"), None)`, or None for an array that each device holds whole. It has at most as many entries as the
array has axes, names each axis of the mesh at most once, and sizes must be divisible. `in_specs` is a tuple with one
spec for each argument; for a dict or a list of arrays the spec may be a dict or a list, for any of them one spec for
all.
""")
_code("E609", "A result that is not a number", FloatingPointError, """
With `nan_check=True`, a result with a NaN raises this error instead. It names the operation that first made a NaN out
of operands without one: in the value, or, where only the derivative is undefined, in the derivative of that line.
""")
_code("E608", "A fault in gradsmith", RuntimeError, """
The code between two stages is not valid. This is a fault in gradsmith; please report it with the function.
""")
