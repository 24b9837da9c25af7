"""The faults of `monitoring/faults.yaml`, to be switched on for practice: what each one shows, and its remedy."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from gamelake.contract.located_yaml import declaration, load_declaration, raise_first
from gamelake.model.choices import allowed
from gamelake.model.errors import ContractError

_Name = Annotated[str, msgspec.Meta(pattern="^[a-z][a-z-]*$")]


class StoppedService(msgspec.Struct, frozen=True, tag_field="kind", tag="stop", forbid_unknown_fields=True):
    """All containers of a service are stopped."""

    service: str


class PausedService(msgspec.Struct, frozen=True, tag_field="kind", tag="pause", forbid_unknown_fields=True):
    """The processes of a service stand still: connections stay open, and nothing responds."""

    service: str


class SlowService(msgspec.Struct, frozen=True, tag_field="kind", tag="slow", forbid_unknown_fields=True):
    """A service gets no more than a number of cores."""

    service: str
    cores: Annotated[float, msgspec.Meta(ge=0.01, le=1)]


class FullStore(msgspec.Struct, frozen=True, tag_field="kind", tag="full", forbid_unknown_fields=True):
    """The object store takes no further object into a bucket, as when its disk is full."""

    bucket: str


class BadRules(msgspec.Struct, frozen=True, tag_field="kind", tag="rules", forbid_unknown_fields=True):
    """A file is added to the rules of data quality."""

    text: str


class FaultyTraffic(msgspec.Struct, frozen=True, tag_field="kind", tag="traffic", forbid_unknown_fields=True):
    """The simulator sends events at a rate per second, for an hour at most."""

    rate: Annotated[int, msgspec.Meta(ge=1, le=10_000)]
    arguments: tuple[str, ...]


class FaultPanel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A panel, by the id of its dashboard and its title.

    Attributes:
        shows: the comparison that a value of it fulfils while the fault is on, such as `> 120`.
    """

    dashboard: str
    title: str
    shows: Annotated[str, msgspec.Meta(pattern=r"^(==|<|>) [0-9.]+$")]


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault.

    Attributes:
        alerts: those that fire within `within` seconds; none: only `panel` shows the fault.
        runbook: the alert whose runbook has the remedy.
        remedy: a command of that runbook; empty: the fault ends once it is switched off.
    """

    name: _Name
    title: str
    effect: str
    injection: StoppedService | PausedService | SlowService | FullStore | BadRules | FaultyTraffic
    panel: FaultPanel
    alerts: tuple[str, ...] = ()
    within: Annotated[int, msgspec.Meta(ge=0, le=3_600)] = 0
    runbook: str = ""
    remedy: str = ""

    @property
    def ended_by(self) -> str:
        """The command that ends it: the runbook's, or the one that switches it off."""
        return self.remedy or f"gamelake fault off {self.name}"


class _Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    faults: tuple[Fault, ...]


@declaration
def load_faults(path: Path) -> Mapping[str, Fault]:
    """Load the faults by name, in the file's order.

    Raises:
        ContractError: the file can't be read, or a value in it is wrong; names file and line.
    """
    declared, document = load_declaration(path, _Faults)
    names = [fault.name for fault in declared.faults]
    raise_first(
        [
            (f"$.faults[{at}].name", f"there are two faults '{name}'")
            for at, name in enumerate(names)
            if name in names[:at]
        ],
        document,
    )
    return {fault.name: fault for fault in declared.faults}


def fault_named(faults: Mapping[str, Fault], name: str) -> Fault:
    """Return the fault of that name.

    Raises:
        ContractError: there is none; names those that there are.
    """
    try:
        return faults[name]
    except KeyError:
        raise ContractError(f"there is no fault '{name}'; there are {allowed(faults, name)}") from None
