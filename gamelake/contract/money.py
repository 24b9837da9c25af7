"""The money contract (`contracts/money.yaml`): the stores' fees and days of grace, and taxes."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from gamelake.contract.located_yaml import Problem, declaration, load_declaration, raise_first
from gamelake.contract.metrics import MetricTerm

# The money contract lies next to the games contract.
MONEY_FILE = "money.yaml"
_DEFAULT = "default"

_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Days = Annotated[int, msgspec.Meta(ge=0, le=60)]
_Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_ .-]{1,63}$")]


class MoneyContract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of `contracts/money.yaml`.

    Attributes:
        store_fees: by platform, the share of the price without tax that the store keeps.
        taxes: by country, the tax that a price includes, as a share of the price without it.
        grace_days: by store, the days for which a subscription continues after the store failed to renew it.
    """

    store_fees: dict[_Name, _Share] = {}
    taxes: dict[str, _Share] = {}
    grace_days: dict[_Name, _Days] = {}

    @property
    def terms(self) -> Mapping[str, MetricTerm]:
        """The terms of views, by name: expressions over the columns platform, market, store and paid_until."""
        # Views are in Trino's SQL, where 0.3 would be a decimal.
        fees = _case("platform", self.store_fees, "{!r}e0")
        taxes = _case("market", self.taxes, "{!r}e0")
        grace = _case("store", self.grace_days, "paid_until + INTERVAL '{}' DAY")
        return {
            "Money('store_fee')": MetricTerm("the share of the price without tax that the store keeps", fees),
            "Money('tax')": MetricTerm("the tax that prices include, as a share of the price without it", taxes),
            "Money('grace_end')": MetricTerm("the store's days of grace after paid_until", grace),
        }


def _case(column: str, values: Mapping[str, float], sql: str) -> str:
    cases = "".join(f" WHEN '{key}' THEN {sql.format(value)}" for key, value in values.items() if key != _DEFAULT)
    other = sql.format(values.get(_DEFAULT, 0))
    return f"CASE {column}{cases} ELSE {other} END" if cases else other


@declaration
def load_money(path: Path) -> MoneyContract:
    """Read and check the money contract; without the file, stores keep nothing, taxes and days of grace are 0.

    Raises:
        ContractError: a key is unknown, a share is not from 0 to 1, days are not from 0 to 60, or `default` is missing;
            names file and line.
    """
    if not path.exists():
        return MoneyContract()
    contract, document = load_declaration(path, MoneyContract)
    raise_first(list(_problems(contract)), document)
    return contract


def _problems(contract: MoneyContract) -> Iterator[Problem]:
    parts: Mapping[str, Mapping[str, float]] = {
        "store_fees": contract.store_fees, "taxes": contract.taxes, "grace_days": contract.grace_days or {_DEFAULT: 0}
    }  # fmt: skip
    for name, shares in parts.items():
        if _DEFAULT not in shares:
            yield f"$.{name}", f"'{name}' has no '{_DEFAULT}', which all others get; add one"
    for country in contract.taxes:
        if country != _DEFAULT and not re.fullmatch("[A-Z]{2}", country):
            yield f"$.taxes.{country}", f"'{country}' is not a country of ISO 3166-1 alpha-2, such as DE"
