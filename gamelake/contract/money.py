"""The money contract (`contracts/money.yaml`): the share of a price that the store keeps, and the share that is tax."""

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
_Platform = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_ .-]{1,63}$")]


class MoneyContract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of `contracts/money.yaml`.

    Attributes:
        store_fees: by platform, the share of the price without tax that the store keeps.
        taxes: by country, the tax that a price includes, as a share of the price without it.
    """

    store_fees: dict[_Platform, _Share] = {}
    taxes: dict[str, _Share] = {}

    @property
    def terms(self) -> Mapping[str, MetricTerm]:
        """The terms of views, by name: expressions over the columns platform and market."""
        fee = MetricTerm("the share of the price without tax that the store keeps", _case("platform", self.store_fees))
        tax = MetricTerm("the tax that prices include, as a share of the price without it", _case("market", self.taxes))
        return {"Money('store_fee')": fee, "Money('tax')": tax}


def _case(column: str, shares: Mapping[str, float]) -> str:
    # Views are in Trino's SQL, where 0.3 would be a decimal.
    cases = "".join(f" WHEN '{value}' THEN {share!r}e0" for value, share in shares.items() if value != _DEFAULT)
    other = f"{shares.get(_DEFAULT, 0)!r}e0"
    return f"CASE {column}{cases} ELSE {other} END" if cases else other


@declaration
def load_money(path: Path) -> MoneyContract:
    """Read and check the money contract; without the file, stores keep nothing and prices include no tax.

    Raises:
        ContractError: a key is unknown, a share is not from 0 to 1, or `default` is missing; names file and line.
    """
    if not path.exists():
        return MoneyContract()
    contract, document = load_declaration(path, MoneyContract)
    raise_first(list(_problems(contract)), document)
    return contract


def _problems(contract: MoneyContract) -> Iterator[Problem]:
    for name, shares in {"store_fees": contract.store_fees, "taxes": contract.taxes}.items():
        if _DEFAULT not in shares:
            yield f"$.{name}", f"'{name}' has no '{_DEFAULT}', which all others get; add one"
    for country in contract.taxes:
        if country != _DEFAULT and not re.fullmatch("[A-Z]{2}", country):
            yield f"$.taxes.{country}", f"'{country}' is not a country of ISO 3166-1 alpha-2, such as DE"
