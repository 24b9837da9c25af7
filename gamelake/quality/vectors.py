"""Compiles conditions to Arrow kernels: several times faster than the SQL engine on a batch of a few thousand rows.

A kernel gives the same result as the engine for each value, also for NULL and for NaN (in the engine equal to itself
and greater than all other numbers). A condition with any other element is evaluated by the engine.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from gamelake.quality.predicate import Constant, Node, constant_of, expression_of

# Columns by their names in lower case.
Columns: TypeAlias = Mapping[str, pa.Array]
Kernel: TypeAlias = Callable[[Columns], pa.Array]

_EXACT = 2**53  # all integers up to here are exact as floating-point numbers
_SMALLEST, _GREATEST = -(2**63), 2**63 - 1
_NUMBER_OR_TEXT = (pa.types.is_int64, pa.types.is_float64, pa.types.is_string, pa.types.is_date32)


class NoKernelError(Exception):
    """A condition has an element that only the engine can evaluate."""


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a condition: its kernel, and the type of its result."""

    kernel: Kernel
    type: pa.DataType


def kernel_of(expect: str, types: Mapping[str, pa.DataType]) -> Kernel:
    """Compile a condition on columns of these types (by lower-case name); its kernel gives a bool or null per row.

    Raises:
        NoKernelError: only the engine can evaluate it.
    """
    term = _Compiler(types).term(expression_of(expect))
    if not pa.types.is_boolean(term.type):
        raise NoKernelError
    return term.kernel


@dataclass(frozen=True, slots=True)
class _Compiler:
    types: Mapping[str, pa.DataType]

    def term(self, node: Node) -> Term:
        make = {
            "COLUMN_REF": self._column,
            "COMPARISON": self._comparison,
            "BETWEEN": self._between,
            "CONJUNCTION": self._conjunction,
            "OPERATOR": self._operator,
            "FUNCTION": self._function,
        }.get(node["class"])
        if make is None:
            raise NoKernelError
        return make(node)

    def _column(self, node: Node) -> Term:
        name, *fields = (str(part).lower() for part in node["column_names"])
        if name not in self.types:
            raise NoKernelError
        term = Term(lambda columns: columns[name], self.types[name])
        for field in fields:
            term = _field(term, field)
        if pa.types.is_timestamp(term.type):
            term = Term(partial(_cast, term.kernel, pa.timestamp("us")), pa.timestamp("us"))
        return term

    def _comparison(self, node: Node) -> Term:
        return self._compared(node["type"], node["left"], node["right"])

    def _between(self, node: Node) -> Term:
        least = self._compared("COMPARE_GREATERTHANOREQUALTO", node["input"], node["lower"])
        most = self._compared("COMPARE_LESSTHANOREQUALTO", node["input"], node["upper"])
        return _boolean(lambda columns: pc.and_kleene(least.kernel(columns), most.kernel(columns)))

    def _compared(self, kind: str, left: Node, right: Node) -> Term:
        if kind not in _COMPARISONS:
            raise NoKernelError
        constant, flipped = constant_of(right), False
        if constant is None and (constant := constant_of(left)) is not None:
            left, flipped = right, True
        term = self.term(left)
        compare = _COMPARISONS[_FLIPPED[kind] if flipped else kind]
        if constant is not None:
            value = _scalar(constant, term.type)
            return _boolean(lambda columns: compare(term.kernel(columns), value))
        other = self.term(right)
        if term.type != other.type or pa.types.is_floating(term.type) or not _has_order(term.type):
            raise NoKernelError
        return _boolean(lambda columns: compare(term.kernel(columns), other.kernel(columns)))

    def _conjunction(self, node: Node) -> Term:
        join = {"CONJUNCTION_AND": pc.and_kleene, "CONJUNCTION_OR": pc.or_kleene}[node["type"]]
        first, *others = (self._condition(child) for child in node["children"])

        def joined(columns: Columns) -> pa.Array:
            result = first(columns)
            for other in others:
                result = join(result, other(columns))
            return result

        return _boolean(joined)

    def _condition(self, node: Node) -> Kernel:
        term = self.term(node)
        if not pa.types.is_boolean(term.type):
            raise NoKernelError
        return term.kernel

    def _operator(self, node: Node) -> Term:
        kind, children = node["type"], node["children"]
        if kind == "OPERATOR_NOT":
            inner = self._condition(children[0])
            return _boolean(lambda columns: pc.invert(inner(columns)))
        if kind == "COMPARE_IN":
            return self._listed(children[0], children[1:])
        test = {"OPERATOR_IS_NULL": pc.is_null, "OPERATOR_IS_NOT_NULL": pc.is_valid}.get(kind)
        if test is None:
            raise NoKernelError
        term = self.term(children[0])
        return _boolean(lambda columns: test(term.kernel(columns)))

    def _listed(self, node: Node, values: list[Node]) -> Term:
        term, constants = self.term(node), [constant_of(value) for value in values]
        if pa.types.is_floating(term.type):
            raise NoKernelError
        scalars = [_scalar(constant, term.type) for constant in constants if constant is not None]
        if len(scalars) < len(values):
            raise NoKernelError
        known = pa.array([scalar.as_py() for scalar in scalars], term.type)
        return _boolean(lambda columns: _is_in(term.kernel(columns), known))

    def _function(self, node: Node) -> Term:
        name, arguments = node["function_name"].lower(), [each["expression"] for each in node["arguments"]]
        match name, arguments:
            case (("+" | "-"), [left, right]):
                return self._moved(name, left, right)
            case (("isnan" | "isinf"), [values]):
                return self._of_one(values, pa.types.is_floating, _OF_FLOATS[name], pa.bool_())
            case (("length" | "len"), [texts]):
                return self._of_one(texts, pa.types.is_string, _length, pa.int64())
            case _, [texts, pattern] if name in _OF_TEXTS:
                test = partial(_OF_TEXTS[name], pattern=_text(pattern))
                return self._of_one(texts, pa.types.is_string, test, pa.bool_())
        raise NoKernelError

    def _of_one(
        self, node: Node, fits: Callable[[pa.DataType], bool], apply: Callable[[pa.Array], pa.Array], gives: pa.DataType
    ) -> Term:
        term = self.term(node)
        if not fits(term.type):
            raise NoKernelError
        return Term(lambda columns: apply(term.kernel(columns)), gives)

    def _moved(self, sign: str, left: Node, right: Node) -> Term:
        """A timestamp plus or minus a constant interval."""
        term, by = self.term(left), constant_of(right)
        # A month has no constant length.
        if not pa.types.is_timestamp(term.type) or by is None or not isinstance(by.value, timedelta) or by.has_months:
            raise NoKernelError
        duration = by.value if sign == "+" else -by.value
        return Term(lambda columns: _later(term.kernel(columns), duration), term.type)


def _text(node: Node) -> str:
    constant = constant_of(node)
    if constant is None or not isinstance(constant.value, str):
        raise NoKernelError
    return constant.value


def _field(term: Term, name: str) -> Term:
    if not pa.types.is_struct(term.type):
        raise NoKernelError
    places = [place for place in range(term.type.num_fields) if term.type.field(place).name.lower() == name]
    if not places:
        raise NoKernelError
    field = term.type.field(places[0])
    return Term(lambda columns: pc.struct_field(term.kernel(columns), field.name), field.type)


def _later(times: pa.Array, by: timedelta) -> pa.Array:
    """Return times moved by a duration; null beyond the last time, where Arrow continues at the first one."""
    moved = pc.add(times, pa.scalar(by, pa.duration("us")))
    beyond = pc.less(moved, times) if by > timedelta(0) else pc.greater(moved, times)
    return pc.if_else(beyond, None, moved) if beyond.true_count else moved


def _boolean(kernel: Kernel) -> Term:
    return Term(kernel, pa.bool_())


def _cast(kernel: Kernel, kind: pa.DataType, columns: Columns) -> pa.Array:
    return kernel(columns).cast(kind)


def _has_order(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or any(fits(kind) for fits in _NUMBER_OR_TEXT)


def _scalar(constant: Constant, kind: pa.DataType) -> pa.Scalar:
    """A constant cast for a comparison with values of a type, as the engine casts it."""
    value = constant.value
    if pa.types.is_float64(kind) and _is_number(value) and abs(value) <= _EXACT:  # type: ignore[arg-type] # a number
        return pa.scalar(float(value), kind)  # type: ignore[arg-type] # likewise
    whole = isinstance(value, int) and not isinstance(value, bool) and _SMALLEST <= value <= _GREATEST
    text = pa.types.is_string(kind) and constant.type == "VARCHAR"
    moment = pa.types.is_timestamp(kind) and constant.type == "TIMESTAMP"
    day = pa.types.is_date32(kind) and constant.type == "DATE"
    if value is not None and ((pa.types.is_int64(kind) and whole) or text or moment or day):
        return pa.scalar(value, kind)
    raise NoKernelError


def _is_number(value: object) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _is_in(values: pa.Array, known: pa.Array) -> pa.Array:
    found = pc.is_in(values, value_set=known)
    return pc.if_else(pc.is_valid(values), found, pa.scalar(None, pa.bool_())) if values.null_count else found


def _length(texts: pa.Array) -> pa.Array:
    return pc.utf8_length(texts).cast(pa.int64())


def _matches(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(texts, rf"\A(?:{pattern})\z")


# In Arrow a comparison with NaN is false.
_COMPARISONS: Mapping[str, Callable[[pa.Array, pa.Array | pa.Scalar], pa.Array]] = {
    "COMPARE_EQUAL": pc.equal,
    "COMPARE_NOTEQUAL": pc.not_equal,
    "COMPARE_LESSTHAN": pc.less,
    "COMPARE_LESSTHANOREQUALTO": pc.less_equal,
    "COMPARE_GREATERTHAN": lambda left, right: pc.invert(pc.less_equal(left, right)),
    "COMPARE_GREATERTHANOREQUALTO": lambda left, right: pc.invert(pc.less(left, right)),
}
_FLIPPED = {
    "COMPARE_EQUAL": "COMPARE_EQUAL",
    "COMPARE_NOTEQUAL": "COMPARE_NOTEQUAL",
    "COMPARE_LESSTHAN": "COMPARE_GREATERTHAN",
    "COMPARE_LESSTHANOREQUALTO": "COMPARE_GREATERTHANOREQUALTO",
    "COMPARE_GREATERTHAN": "COMPARE_LESSTHAN",
    "COMPARE_GREATERTHANOREQUALTO": "COMPARE_LESSTHANOREQUALTO",
}
_OF_FLOATS: Mapping[str, Callable[[pa.Array], pa.Array]] = {"isnan": pc.is_nan, "isinf": pc.is_inf}
_OF_TEXTS: Mapping[str, Callable[..., pa.Array]] = {
    "regexp_full_match": _matches,
    "contains": pc.match_substring,
    "starts_with": pc.starts_with,
    "prefix": pc.starts_with,
    "suffix": pc.ends_with,
    "ends_with": pc.ends_with,
}
