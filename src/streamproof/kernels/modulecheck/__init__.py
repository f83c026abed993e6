"""Try a module on random windows, and tell its author in plain words what it does not keep to.

>>> from streamproof.plan.modules import uda
>>> @uda("first_value", returns="float64", takes="float64")
... def first_value(values):
...     return values[0]
>>> print(check_module(first_value).to_text())
uda first_value@1: 1 finding in 200 windows (seed 0)
depends on the order of events
  gave 0.0, but 0.1 when the events came in the order [0.1, 0.0]
  at: window [5, 8) with [5, 6) 0.0, [5, 6) 0.1
  fix: sort the events first, or declare order_insensitive=False
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

from streamproof.arguments import door
from streamproof.errors import PlanError
from streamproof.events.schema import FLOAT64, Schema, Type
from streamproof.kernels.modulecheck import functions, laws
from streamproof.kernels.modulecheck.laws import Law, Subject
from streamproof.kernels.modulecheck.samples import Sample, SampleKind, samples, smallest
from streamproof.plan.failures import raised_at
from streamproof.plan.modules import Clipping, Module, Restriction

MOST_WINDOWS: Final = 10_000_000
DEFAULT_INPUTS: Final = Schema.of({"k": "string", "v": "float64"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a module does not keep to, with the smallest window that shows it."""

    law: str  # stable and machine-readable
    title: str
    what: str
    at: str
    fix: str

    def __str__(self) -> str:
        return f"{self.title}\n  {self.what}\n  at: {self.at}\n  fix: {self.fix}"


@dataclass(frozen=True, slots=True)
class ModuleReport:
    """What came of trying a module."""

    module: str
    findings: tuple[Finding, ...]
    checked: tuple[str, ...]  # the laws that were tried
    windows: int
    seed: int

    @property
    def holds(self) -> bool:
        return not self.findings

    def to_text(self) -> str:
        """The report for people."""
        tried = f"in {self.windows} windows (seed {self.seed})"
        if self.holds:
            return f"{self.module}: keeps to {', '.join(self.checked)} {tried}"
        count = len(self.findings)
        head = f"{self.module}: {count} finding{'s' if count > 1 else ''} {tried}"
        return "\n".join([head, *map(str, self.findings)])

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        named = ("law", "title", "what", "at", "fix")
        return {
            "module": self.module,
            "holds": self.holds,
            "findings": [{name: getattr(each, name) for name in named} for each in self.findings],
            "checked": list(self.checked),
            "windows": self.windows,
            "seed": self.seed,
        }


@dataclass(frozen=True, slots=True)
class _Rule:
    """A law with what to say when it is broken."""

    name: str
    law: Law
    title: str
    fix: str


_TYPE = _Rule("type", laws.gives_what_it_declares, "gives what it does not declare", "return what it declares")
_DETERMINISTIC = _Rule(
    "deterministic", laws.is_deterministic, "is not deterministic",
    "make the answer depend on the events alone, or declare deterministic=False",
)  # fmt: skip
_ORDER = _Rule(
    "order_insensitive", laws.ignores_order, "depends on the order of events",
    "sort the events first, or declare order_insensitive=False",
)  # fmt: skip
_INCREMENTAL = (
    _Rule("add", laws.adds_in_steps, "add in steps is not add at once", "make add continue from the state it is given"),
    _Rule("remove", laws.removes_what_it_added, "remove does not undo add", "make remove the inverse of add"),
    _Rule("apart", laws.keeps_windows_apart, "mixes up windows", "keep everything in the state, and nothing in self"),
    _Rule(
        "state", laws.has_a_state_that_can_be_written, "has a state that cannot be written down",
        "keep plain values in the state: numbers, text, lists, dicts",
    ),
)  # fmt: skip
_EMPTY = _Rule(
    "empty_preserving", laws.makes_nothing_of_nothing, "makes rows of nothing",
    "give no rows without events, or declare empty_preserving=False",
)  # fmt: skip
_WINDOW_BASED = _Rule(
    "window_based", laws.starts_no_row_before_its_window, "starts rows before their window",
    'clip its input on the left, stamp its output with "clip" or "align", or promise no restriction',
)  # fmt: skip
_TIME_BOUND = _Rule(
    "time_bound", laws.changes_only_from_there_on, "is not time-bound", 'promise "window_based" at most'
)


@door
def check_module(
    module: Module,
    *,
    params: Mapping[str, Any] | None = None,
    inputs: Mapping[str, str | Type] | Schema | None = None,
    clip: Clipping = "none",
    restriction: Restriction = "none",
    plain: bool = False,
    seed: int = 0,
    windows: int = 200,
) -> ModuleReport:
    """Try a module on random windows of events, or a function on random arguments.

    ``inputs`` are the columns that a UDO reads, or the types that other modules take, where they do not declare them.
    ``clip`` and ``restriction`` are those it is to be used with. ``plain`` leaves out nulls, NaN, the infinities and
    lifetimes without end. Law: the same seed tries the same.
    """
    if windows < 1:
        raise PlanError(f"{windows} windows to try", fix="try at least one")
    if windows > MOST_WINDOWS:
        raise PlanError(f"{windows:,} windows to try", fix=f"try at most {MOST_WINDOWS:,}", name="limit_exceeded")
    columns = _columns(module, inputs)
    if module.kind == "udf":
        return _of_function(module, columns, plain=plain, seed=seed, calls=windows)
    subject = Subject(module, module.bind(params or {}), module.result_type(columns), restriction)
    kind = SampleKind(columns.columns, clip=clip, as_rows=module.kind == "udo", plain=plain)
    tried = list(islice(samples(kind, seed=seed), windows))
    rules = list(_rules(subject))
    findings = [found for found in _findings(subject, rules, tried) if found is not None]
    return ModuleReport(str(module), tuple(findings), ("no_exceptions", *(r.name for r in rules)), windows, seed)


def _columns(module: Module, inputs: Mapping[str, str | Type] | Schema | None) -> Schema:
    if inputs is not None:
        return inputs if isinstance(inputs, Schema) else Schema.of(inputs)
    if module.kind == "udo":
        return DEFAULT_INPUTS
    takes: Sequence[Type] = (FLOAT64,) if module.takes is None else module.takes
    return Schema(tuple((f"arg{n}", kind) for n, kind in enumerate(takes)))


def _rules(subject: Subject) -> Iterator[_Rule]:
    """The laws that a module is held to: by its kind, and by what it declares."""
    module, promises = subject.module, subject.module.properties
    yield _TYPE
    if promises.deterministic:
        yield _DETERMINISTIC
        if module.incremental:
            yield from _INCREMENTAL
        if promises.order_insensitive:
            yield _ORDER
    if module.kind != "udo":
        return
    if promises.empty_preserving:
        yield _EMPTY
    for column in sorted(promises.passes):
        fix = f"give {column} as it came, judge every row by itself, or do not declare that it passes"
        yield _Rule(f"passes {column}", laws.passes_on(column), f'does not pass "{column}" on', fix)
    if subject.restriction != "none":
        yield _WINDOW_BASED
    if promises.time_bound or subject.restriction == "time_bound":
        yield _TIME_BOUND


def _findings(subject: Subject, rules: Sequence[_Rule], tried: Sequence[Sample]) -> Iterator[Finding | None]:
    """What the first window that breaks a law shows, made as small as can be. One that raises is asked no further."""
    raises = _raises(subject, tried)
    yield raises
    calm = [sample for sample in tried if raises is None or _error(subject, sample) is None]
    for rule in rules:
        found = _broken(subject, rule, calm)
        yield found
        if rule is _DETERMINISTIC and found is not None:
            return  # whoever compares two answers would only find this again


def _error(subject: Subject, sample: Sample) -> Exception | None:
    try:
        subject.answer(sample)
    except Exception as error:
        return error
    return None


def _raises(subject: Subject, tried: Sequence[Sample]) -> Finding | None:
    for sample in tried:
        error = _error(subject, sample)
        if error is not None:
            small = smallest(sample, partial(_fails_alike, subject, type(error)))
            return _exception(subject, _error(subject, small) or error, small)
    return None


def _fails_alike(subject: Subject, kind: type[Exception], sample: Sample) -> bool:
    return isinstance(_error(subject, sample), kind)


def _exception(subject: Subject, error: Exception, sample: Sample) -> Finding:
    line = raised_at(error, subject.module)
    what = f"{type(error).__name__}: {error}{line and f', raised at {line}'}"
    fix = "handle such a window; it must not raise (plain tries it without nulls, NaN and infinities)"
    if isinstance(error, KeyError):
        fix = "give the columns that it reads as inputs, or handle windows without them"
    return Finding("no_exceptions", "raises", what, str(sample), fix)


def _broken(subject: Subject, rule: _Rule, tried: Sequence[Sample]) -> Finding | None:
    for sample in tried:
        if _verdict(subject, rule, sample) is not None:
            small = smallest(sample, lambda each: _verdict(subject, rule, each) is not None)
            what = _verdict(subject, rule, small) or _verdict(subject, rule, sample) or "does so now and then"
            return Finding(rule.name, rule.title, what, str(small), rule.fix)
    return None


def _verdict(subject: Subject, rule: _Rule, sample: Sample) -> str | None:
    """What a law says about a window; None where it holds, or where the module cannot be called at all."""
    try:
        return rule.law(subject, sample)
    except Exception as error:
        if _error(subject, sample) is not None:
            return None
        line = raised_at(error, subject.module)
        return f"raised {type(error).__name__}: {error}{line and f' at {line}'}"


def _of_function(module: Module, columns: Schema, *, plain: bool, seed: int, calls: int) -> ModuleReport:
    result = module.result_type(columns)
    assert isinstance(result, Type), "functions give values"
    broken = functions.broken_laws(
        module, tuple(kind for _, kind in columns), result, plain=plain, seed=seed, calls=calls
    )
    findings = tuple(Finding(*parts) for parts in broken)
    return ModuleReport(str(module), findings, ("no_exceptions", "type", "deterministic"), calls, seed)


__all__ = ["Finding", "ModuleReport", "check_module"]
