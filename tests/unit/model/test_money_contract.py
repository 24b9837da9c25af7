"""The money contract: shares by platform and country, as SQL of views."""

from pathlib import Path

import pytest

from gamelake.contract.money import load_money
from gamelake.model.errors import ContractError


def test_a_share_by_platform_and_by_country_is_an_expression(tmp_path: Path) -> None:
    file = tmp_path / "money.yaml"
    file.write_text("store_fees: {default: 0.3, web: 0.05}\ntaxes: {default: 0}\n")

    terms = load_money(file).terms

    assert terms["Money('store_fee')"].sql == "CASE platform WHEN 'web' THEN 0.05e0 ELSE 0.3e0 END"
    assert terms["Money('tax')"].sql == "0.0e0"


def test_days_of_grace_by_store_are_an_expression(tmp_path: Path) -> None:
    file = tmp_path / "money.yaml"
    file.write_text("store_fees: {default: 0}\ntaxes: {default: 0}\ngrace_days: {default: 0, app_store: 16}\n")

    assert load_money(file).terms["Money('grace_end')"].sql == (
        "CASE store WHEN 'app_store' THEN paid_until + INTERVAL '16' DAY ELSE paid_until + INTERVAL '0' DAY END"
    )


def test_without_the_file_stores_keep_nothing_and_give_no_grace(tmp_path: Path) -> None:
    terms = load_money(tmp_path / "money.yaml").terms

    assert {each.sql for each in terms.values()} == {"0e0", "paid_until + INTERVAL '0' DAY"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("store_fees: {default: 1.3}\ntaxes: {default: 0}\n", "money.yaml:1: .*<= 1"),
        (
            "store_fees: {default: 0}\ntaxes:\n  default: 0\n  Germany: 0.19\n",
            "money.yaml:4: 'Germany' is not a country",
        ),
        ("store_fees: {default: 0}\ntaxes: {DE: 0.19}\n", "money.yaml:2: 'taxes' has no 'default'"),
        (
            "store_fees: {default: 0}\ntaxes: {default: 0}\ngrace_days: {app_store: 16}\n",
            "money.yaml:3: 'grace_days' has no 'default'",
        ),
        ("store_fees: {default: 0}\ntaxes: {default: 0}\ngrace_days: {default: 61}\n", "money.yaml:3: .*<= 60"),
        ("store_fee: {default: 0}\n", "money.yaml:1: unknown key 'store_fee'"),
        ('store_fees: {"x\' OR 1=1": 0}\ntaxes: {default: 0}\n', "money.yaml:1"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "money.yaml"
    file.write_text(text)

    with pytest.raises(ContractError, match=message):
        load_money(file)
