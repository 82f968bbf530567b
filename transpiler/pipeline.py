"""The way of a func from traced IR to loop-level IR, as named stages.  The verifier runs after each.

    traced ─ transform ─ place ─ simplify ─ common ─ put_back ─ dead ─ fuse ─ raise ─► StableHLO
      ─ grow ─ rows ─ lower ─ tidy ─ newest ─ hoist ─ apart ─ scalars ─ parts ─ write_ahead ─ gather ─ factor
      ─ interchange ─ lay_out ─ ascend ─ clear_late ─ waves ─ jam ─ promote ─ hand_on ─ stagger ─ abreast ─ ahead ─ pack
      ─ trips_apart ─ settle ─ reuse ─► emission

A stage is a pure function `Func -> Func`, applied to each func of a module.  `run(func, stop="lower")` ends after that
stage, `history=` collects what each stage made; `gradsmith show --at STAGE` prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, TypeVar, cast

from .emit.hlo_bounds import with_known_sizes
from .emit.hlo_inline import without_calls
from .ir.library import Program, each_func, main_of
from .ir.nodes import Func, Module
from .ir.verify import InvalidIR, verify
from .lower.loops import lower
from .optimize.abreast import run_abreast
from .optimize.ahead import compute_ahead
from .optimize.apart import read_apart
from .optimize.ascend import ascend
from .optimize.clear_late import clear_late
from .optimize.common import share_common
from .optimize.count_late import count_late
from .optimize.dead_code import drop_dead_code
from .optimize.factor import add_partials_first
from .optimize.fuse_adds import fuse_adds
from .optimize.fuse_calls import fuse_mutual_calls
from .optimize.gather import gather_adds
from .optimize.gather_rows import gather_rows
from .optimize.grow_tapes import grow_tapes
from .optimize.hand_on import hand_on
from .optimize.hoist import hoist_all
from .optimize.independent import mark_independent
from .optimize.interchange import interchange
from .optimize.jam import jam
from .optimize.keep_room import keep_room
from .optimize.lay_out import lay_out
from .optimize.newest import read_newest
from .optimize.pack import pack_tapes
from .optimize.parts import run_in_parts
from .optimize.place_calls import place_ruled_calls
from .optimize.promote import promote
from .optimize.put_back import put_back
from .optimize.reuse import reuse_memory
from .optimize.rows import read_rows
from .optimize.settle import settle
from .optimize.simplify import simplify
from .optimize.sink import sink_merges
from .optimize.small_arrays import arrays_as_scalars, take_arms, write_out
from .optimize.split_loops import split_loops
from .optimize.stagger import stagger
from .optimize.trips_apart import mark_apart
from .optimize.unchanged import drop_unchanged
from .optimize.wavefront import run_in_waves
from .optimize.write_ahead import write_ahead
from .raise_loops.findings import Finding
from .raise_loops.stage import raise_loops
from .report import Report
from .stack import deep_stack
from .transforms.masked import mask_lanes


@dataclass(frozen=True)
class Stage:
    """name: what people call it.  apply: Func -> Func.  about: one line for `--help`.  whole: apply takes the func or
    module as a whole."""

    name: str
    apply: Callable[[Any], Any]
    about: str
    whole: bool = False


def simplify_all(func: Func) -> Func:
    """Simplify until nothing changes (each round only finds what the round before laid bare)."""
    while True:
        simpler = sink_merges(simplify(func))
        if simpler is func:
            return func
        func = simpler


def tidy(func: Func) -> Func:
    """After lowering: carries that do not change dropped, index arithmetic simplified, equal loads shared, what nobody
    reads dropped."""
    return drop_dead_code(share_common(simplify_all(drop_unchanged(func))))


def scalars_all(func: Func) -> Func:
    written = write_out(func)
    if written is not func:
        written = tidy(take_arms(tidy(written)))
    found = arrays_as_scalars(written)
    return func if found is written else hoist_all(tidy(found))


def grow_all(func: Func, report: Report | None = None) -> Func:
    late = count_late(func, report)
    return grow_tapes(func if late is func else drop_dead_code(share_common(late)))


def gather_all(func: Func) -> Func:
    while (fused := fuse_adds(func)) is not func:
        func = hoist_all(tidy(fused))       # loops inside have the same bounds only then
    while (rows := gather_rows(func)) is not func:
        func = hoist_all(tidy(rows))        # rows of rows
    gathered = gather_adds(func)
    return func if gathered is func else hoist_all(tidy(gathered))


def parts_all(func: Func) -> Func:
    parts = run_in_parts(func)
    return func if parts is func else hoist_all(tidy(parts))


def write_ahead_all(func: Func) -> Func:
    ahead = write_ahead(func)
    return func if ahead is func else hoist_all(tidy(ahead))


def factor_all(func: Func) -> Func:
    factored = add_partials_first(func)
    return func if factored is func else hoist_all(tidy(factored))


def interchange_all(func: Func) -> Func:
    turned = interchange(func)
    return func if turned is func else hoist_all(tidy(turned))


def lay_out_all(func: Func) -> Func:
    laid = lay_out(func)
    return func if laid is func else interchange_all(laid)      # other loops may go along rows then


def ascend_all(func: Func) -> Func:
    upwards = ascend(func)
    return func if upwards is func else hoist_all(tidy(upwards))


def clear_late_all(func: Func) -> Func:
    late = clear_late(func)
    return func if late is func else hoist_all(tidy(late))


def jam_all(func: Func) -> Func:
    split = split_loops(func)
    jammed = jam(split)
    return func if jammed is split else hoist_all(tidy(jammed))


def waves_all(func: Func) -> Func:
    waves = run_in_waves(func)
    return func if waves is func else hoist_all(tidy(waves))


def promote_all(func: Func) -> Func:
    promoted = promote(func)
    return func if promoted is func else hoist_all(drop_dead_code(drop_unchanged(promoted)))


def stagger_all(func: Func) -> Func:
    staggered = stagger(func)
    return func if staggered is func else tidy(staggered)


def ahead_all(func: Func) -> Func:
    ahead = compute_ahead(func)
    return func if ahead is func else tidy(ahead)


def pack_all(func: Func) -> Func:
    packed = pack_tapes(func)
    return func if packed is func else hoist_all(share_common(simplify_all(packed)))


def hand_on_all(func: Func) -> Func:
    handed = hand_on(func)
    return func if handed is func else hoist_all(tidy(handed))


def reuse_all(func: Func) -> Func:
    return reuse_memory(keep_room(func))


STAGES: tuple[Stage, ...] = (
    Stage("place", place_ruled_calls, "calls of functions with rules of their own put in place", whole=True),
    Stage("simplify", simplify_all, "algebra that is exact, constants computed"),
    Stage("common", share_common, "equal statements computed once"),
    Stage("put_back", put_back, "places cleared and then added to are stored to"),
    Stage("dead", drop_dead_code, "statements whose results nobody reads dropped"),
    Stage("fuse", fuse_mutual_calls, "funcs that call each other in a circle made one", whole=True),
    Stage("grow", grow_all, "loops that count the trips of a loop made one with it, with tapes that grow"),
    Stage("rows", read_rows, "elements of rows read where the row is"),
    Stage("lower", lower, "tensor statements fused into loops"),
    Stage("tidy", tidy, "index arithmetic simplified, loads shared"),
    Stage("newest", read_newest, "reads of what is about to be overwritten"),
    Stage("hoist", hoist_all, "what does not change moved out of loops"),
    Stage("apart", read_apart, "reads of other places than those that a loop overwrites"),
    Stage("scalars", scalars_all, "arrays of a few elements made scalars, with loops over them written out"),
    Stage("parts", parts_all, "segments that run again do so for as many elements at a time as caches hold"),
    Stage("write_ahead", write_ahead_all, "steps written straight into the next row of the tape that keeps them"),
    Stage("gather", gather_all, "loops that add to neighbours add to one element a trip"),
    Stage("factor", factor_all, "terms that have a cotangent in common added up before they are multiplied with it"),
    Stage("interchange", interchange_all, "loops whose trips are independent and along rows made the innermost"),
    Stage("lay_out", lay_out_all, "the function's own arrays with that axis last along which loops go"),
    Stage("ascend", ascend_all, "loops whose trips may come in any order count up"),
    Stage("clear_late", clear_late_all, "cotangents that a trip clears computed anew by the next"),
    Stage("waves", waves_all, "rows of dear cells that wait for each other run as vectors of cells that do not"),
    Stage("jam", jam_all, "some trips made at once of loops whose inner loops work on the same elements"),
    Stage("promote", promote_all, "elements that a loop works on kept in scalars"),
    Stage("hand_on", hand_on_all, "elements that the next trip works on handed to it in scalars"),
    Stage("stagger", stagger_all, "rows of cells that wait for each other run a few at a time"),
    Stage("abreast", run_abreast, "lanes with dear trips side by side, so that they are vectorised"),
    Stage("ahead", ahead_all, "what is dear and waits for nothing computed before the loops that wait, in vectors"),
    Stage("pack", pack_all, "tapes with rows of different lengths without gaps"),
    Stage("trips_apart", mark_apart, "loops over several rows of an array marked where their trips are independent"),
    Stage("settle", settle, "new arrays computed in the memory of arguments and of arrays that are over"),
    Stage("reuse", reuse_all, "memory that each trip allocates anew allocated once"),
)


def raise_all(func: Func, *, findings: list[Finding] | None = None, keeps: bool = True) -> Func:
    """Loops over elements as operations on whole arrays; `findings` is told what became of each loop.  keeps: what an
    exception leaves behind, too (`raise_loops.nests`)."""
    return raise_loops(func, tidy, findings, keeps=keeps)


def mask_all(func: Func) -> Func:
    masked = mask_lanes(func)
    return func if masked is func else tidy(masked)


def stablehlo_stages(findings: list[Finding] | None = None, *, raises: bool = True, masks: bool = True,
                     max_trips: int | None = None) -> tuple[Stage, ...]:
    """The stages before StableHLO is written.  raises: whether loops are raised.  masks: whether loops over lanes that
    branch become operations on all lanes.  max_trips: see `emit.hlo_bounds`."""
    before = STAGES[:[stage.name for stage in STAGES].index("fuse")]
    return (*before,
            Stage("calls", without_calls, "called functions written in place", whole=True),
            Stage("sizes", partial(with_known_sizes, max_trips=max_trips), "room for all that loops may save"),
            *([Stage("raise", partial(raise_all, findings=findings, keeps=False),
                     "loops over elements made operations on whole arrays")] if raises else []),
            *([Stage("mask", mask_all, "loops over lanes that branch made operations on all lanes")] if masks else []))


INDEPENDENT = Stage("independent", mark_independent, "loops whose trips touch places of their own are parallel")
PARALLEL_STAGES = tuple(
    found for stage in STAGES for found in (
        [Stage(stage.name, partial(lower, private=True), stage.about)] if stage.name == "lower" else
        [INDEPENDENT, stage] if stage.name == "reuse" else [stage]))
ProgramT = TypeVar("ProgramT", Func, Module, Program)
NAMES = (*(stage.name for stage in PARALLEL_STAGES), "calls", "sizes", "raise", "mask")


def reporting(stages: Sequence[Stage], report: Report) -> tuple[Stage, ...]:
    """The stages, with those that have something to tell telling `report` what they do."""
    return tuple(replace(stage, apply=partial(cast(Callable[..., Func], stage.apply), report=report))
                 if stage.name in ("grow", "lower") else stage for stage in stages)


@dataclass
class Step:
    """What one stage did: its func and how long it and the verifier took, in seconds."""

    stage: str
    func: Program
    seconds: float


def require_effects(before: Program, after: Program, stage: str) -> None:
    """A stage keeps what the main func does to its arguments: a mistake of ours otherwise."""
    if main_of(before).effects != main_of(after).effects:
        raise InvalidIR(f"the stage {stage} has lost effects", main_of(after))


@deep_stack()
def run(func: ProgramT, *, stop: str | None = None, history: list[Step] | None = None,
        stages: Sequence[Stage] = STAGES) -> ProgramT:
    """Run the stages in order, up to and including `stop`; on every func of a module."""
    if stop is not None and stop not in [stage.name for stage in stages]:
        raise ValueError(f"no stage named {stop!r}; stages are {', '.join(s.name for s in stages)}")
    for stage in stages:
        start = perf_counter()
        after = stage.apply(func) if stage.whole else each_func(func, stage.apply)
        if after is not func:
            verify(after)
            require_effects(func, after, stage.name)
        func = after
        if history is not None:
            history.append(Step(stage.name, func, perf_counter() - start))
        if stage.name == stop:
            break
    return func
