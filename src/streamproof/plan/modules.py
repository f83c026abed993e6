"""User-defined modules: descriptions of UDFs, UDAs and UDOs, and the registry that finds them by name.

A module is called by name with parameters; the writer of a query never sees its insides. A UDF is a function used in
any expression, a UDA gives one value per non-empty window, a UDO zero or more rows per window.

>>> @uda("spread", returns="float64")
... def spread(values):
...     return float(max(values) - min(values))
>>> spread
uda spread@1
>>> Registry().add(spread).find("spread", "uda") is spread
True
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from streamproof.arguments import door, doors
from streamproof.errors import PlanError, did_you_mean
from streamproof.events.schema import Schema, Type, parse_type
from streamproof.extensions import imported
from streamproof.plan.failures import function_failed, module_failed
from streamproof.plan.parse import check_free

ModuleKind: TypeAlias = Literal["udf", "uda", "udo"]
Clipping: TypeAlias = Literal["none", "left", "right", "full"]
Stamping: TypeAlias = Literal["align", "unchanged", "clip"]
Restriction: TypeAlias = Literal["none", "window_based", "time_bound"]
Payload: TypeAlias = "dict[str, Any]"


class Event(NamedTuple):
    """What a time-sensitive module sees of an event: its (clipped) lifetime and its value (UDA) or payload (UDO)."""

    le: int
    re: int
    value: Any


class WindowSpan(NamedTuple):
    """The window a module is called for."""

    le: int
    re: int


class Incremental(Protocol):
    """A module that keeps a state per window and gets only what changed."""

    def start(self) -> Any: ...
    def add(self, state: Any, events: Sequence[Any]) -> Any: ...
    def remove(self, state: Any, events: Sequence[Any]) -> Any: ...
    def result(self, state: Any, *window: WindowSpan) -> Any: ...


_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "int64": (int,), "float64": (int, float), "string": (str,), "bool": (bool,), "decimal": (int, Decimal),
    "date": (date,), "timestamp": (datetime,),
}  # fmt: skip


@doors
@dataclass(frozen=True, slots=True)
class Parameter:
    """A named parameter of a module; a required one must be given.

    >>> Parameter("limit", "int64", default=10).type
    Type('int64')
    """

    name: str
    type: Type | str  # a word stands for its type
    default: Any = None
    required: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.type, str):
            object.__setattr__(self, "type", parse_type(self.type))

    def check(self, value: Any, module: Module) -> Any:
        """The value itself, or the error that it is not of the parameter's type; null is of every type."""
        kind = self.type.kind if isinstance(self.type, Type) else self.type
        allowed = _PYTHON_TYPES.get(kind, (object,))
        if value is None or (isinstance(value, allowed) and (kind == "bool" or not isinstance(value, bool))):
            return value
        raise PlanError(
            f'the parameter "{self.name}" of {module} is {self.type}, got {value!r}', name="type_mismatch",
            fix=f"give a {self.type}",
        )  # fmt: skip


@doors
@dataclass(frozen=True, slots=True)
class Properties:
    """What a module promises; the optimiser believes it and the workbench tests it."""

    deterministic: bool = True
    time_bound: bool = False
    passes: frozenset[str] = frozenset()  # columns that a UDO hands through unchanged, and rejects no row by others
    empty_preserving: bool = True
    order_insensitive: bool = True
    invertible: bool = False


ReturnRule: TypeAlias = "Callable[[Schema], Type | Schema]"


@dataclass(frozen=True, slots=True, repr=False)
class Module:
    """The description of a module: everything an engine needs to call it and the optimiser to look through it.

    ``implementation`` is a function ``compute(values)``, or a class with start/add/remove/result if ``incremental``.
    Time-sensitive ones get `Event` tuples and a `WindowSpan`; others plain values (UDA) or payload dicts (UDO).
    Parameters arrive as keyword arguments.
    """

    kind: ModuleKind
    name: str
    implementation: Callable[..., Any]
    returns: Type | Schema | ReturnRule
    version: str = "1"
    params: tuple[Parameter, ...] = ()
    takes: tuple[Type, ...] | None = None  # argument types of a UDF, or the one of a UDA; None takes anything
    incremental: bool = False
    time_sensitive: bool = False
    passes_null: bool = False  # UDFs: called with None too, instead of answering null by itself
    properties: Properties = field(default_factory=Properties)
    summary: str = ""

    def __post_init__(self) -> None:
        if self.kind == "udf":
            check_free(self.name)

    def __repr__(self) -> str:
        return f"{self.kind} {self.name}@{self.version}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The module stays callable as the plain function or class it was made from."""
        return self.implementation(*args, **kwargs)

    def result_type(self, inputs: Schema) -> Type | Schema:
        """The type of the value (UDF, UDA) or the schema of the rows (UDO) for these inputs."""
        if isinstance(self.returns, Type | Schema):
            return self.returns
        return self.returns(inputs)

    def bind(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters to call with: given ones checked, the rest by default."""
        known = {p.name: p for p in self.params}
        for name in given:
            if name not in known:
                raise PlanError(
                    f'{self} has no parameter "{name}"', fix=did_you_mean(name, known) if known else "it takes none"
                )
        missing = [p.name for p in self.params if p.required and p.name not in given]
        if missing:
            raise PlanError(f'{self} needs the parameter "{missing[0]}"', fix=f'params: {{"{missing[0]}": …}}')
        return {p.name: p.check(given[p.name], self) if p.name in given else p.default for p in self.params}

    def evaluate(self, events: Sequence[Event], window: WindowSpan, params: Mapping[str, Any]) -> Any:
        """The module's answer for a whole window at once, whatever its kind; a failure names module and window."""
        seen: Sequence[Any] = events if self.time_sensitive else [event.value for event in events]
        extra = (window,) if self.time_sensitive else ()
        try:
            if not self.incremental:
                answer = self.implementation(seen, *extra, **params)
            else:
                unit = self.implementation(**params)
                answer = unit.result(unit.add(unit.start(), seen), *extra)
            return list(answer) if self.kind == "udo" else answer
        except Exception as error:
            raise module_failed(self, error, window, events) from error

    def apply(self, args: Sequence[Any]) -> Any:
        """One call of a UDF."""
        if not self.passes_null and any(arg is None for arg in args):
            return None
        try:
            return self.implementation(*args)
        except Exception as error:
            raise function_failed(self, error, args) from error


@doors
class Registry:
    """Modules by name and version. A bare name finds the highest version."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self._modules: dict[tuple[str, str], Module] = {}
        self.changes = 0  # how often a module was added: what was made of the modules before may be out of date
        for module in modules:
            self.add(module)

    def __iter__(self) -> Iterator[Module]:
        return iter(sorted(self._modules.values(), key=lambda m: (m.name, _order(m.version))))

    def add(self, module: Module) -> Registry:
        """Register a module; another implementation under the same name and version is refused."""
        key = (module.name, module.version)
        known = self._modules.get(key)
        if known is not None and known.implementation is not module.implementation:
            raise PlanError(f"{module} is registered already", fix="give the new one another version")
        self._modules[key] = module
        self.changes += 1
        return self

    def find(self, name: str, kind: ModuleKind) -> Module:
        """The module called ``name`` or ``name@version``."""
        base, _, version = name.partition("@")
        found = [m for m in self if m.name == base and m.kind == kind and version in ("", m.version)]
        if not found:
            names = sorted({m.name for m in self if m.kind == kind})
            raise PlanError(f'unknown {kind} "{name}"', fix=did_you_mean(base, names), name="unknown_module")
        return found[-1]

    def load(self, reference: str) -> Registry:
        """Add every module that the Python module ``reference`` (dotted name) defines."""
        for value in vars(imported(reference)).values():
            if isinstance(value, Module):
                self.add(value)
        return self


def _order(version: str) -> list[tuple[int, str]]:
    """Versions compare by their numbers: 10 comes after 9."""
    parts = re.split(r"[.\-+]", version)
    return [(len(part.lstrip("0")), part.lstrip("0")) if part.isdigit() else (-1, part) for part in parts]


@door
def udf(
    name: str,
    *,
    returns: str | Type | ReturnRule,
    takes: Sequence[str | Type] | None = None,
    version: str = "1",
    passes_null: bool = False,
    properties: Properties | None = None,
) -> Callable[[Callable[..., Any]], Module]:
    """Describe a function for use in expressions, e.g. ``where("is_prime(v)")``."""
    return _describe(
        "udf", name, returns, version=version, properties=properties, takes=_types(takes), passes_null=passes_null
    )


@door
def uda(
    name: str,
    *,
    returns: str | Type | ReturnRule,
    takes: str | Type | None = None,
    version: str = "1",
    params: Iterable[Parameter] = (),
    incremental: bool = False,
    time_sensitive: bool = False,
    properties: Properties | None = None,
) -> Callable[[Callable[..., Any]], Module]:
    """Describe an aggregate: one value per non-empty window."""
    return _describe(
        "uda", name, returns, version=version, params=tuple(params), properties=properties,
        takes=_types(None if takes is None else [takes]), incremental=incremental, time_sensitive=time_sensitive,
    )  # fmt: skip


@door
def udo(
    name: str,
    *,
    returns: Mapping[str, str | Type] | Schema | ReturnRule,
    version: str = "1",
    params: Iterable[Parameter] = (),
    incremental: bool = False,
    time_sensitive: bool = False,
    properties: Properties | None = None,
) -> Callable[[Callable[..., Any]], Module]:
    """Describe an operator: zero or more rows per window."""
    rows = Schema.of(returns) if isinstance(returns, Mapping) else returns
    return _describe(
        "udo", name, rows, version=version, params=tuple(params), properties=properties,
        incremental=incremental, time_sensitive=time_sensitive,
    )  # fmt: skip


def _types(takes: Sequence[str | Type] | None) -> tuple[Type, ...] | None:
    return None if takes is None else tuple(t if isinstance(t, Type) else parse_type(t) for t in takes)


def _describe(
    kind: ModuleKind,
    name: str,
    returns: str | Type | Schema | ReturnRule,
    *,
    properties: Properties | None,
    **details: Any,
) -> Callable[[Callable[..., Any]], Module]:
    result = parse_type(returns) if isinstance(returns, str) else returns

    def describe(implementation: Callable[..., Any]) -> Module:
        summary = (implementation.__doc__ or "").strip().partition("\n")[0]
        promises = properties or Properties()
        return Module(kind, name, implementation, result, properties=promises, summary=summary, **details)

    return describe
