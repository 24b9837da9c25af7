"""Console pages: the committed files match the dashboards, and values can't break out of a template."""

import json
import re
from html import unescape
from os.path import normpath
from pathlib import PurePosixPath

import pytest
from grafana_foundation_sdk.models import units

from monitoring.consoles.expressions import (
    formatted,
    graph_link,
    instant_query,
    legend,
    quoted_for_script,
    severity_class,
)
from monitoring.consoles.files import committed, consoles
from monitoring.consoles.runbooks import RUNBOOKS
from monitoring.grafana.dashboards import PAGES
from monitoring.grafana.page import Page
from monitoring.grafana.panels import Rating, Thresholds, Word
from tests.unit.monitoring.rules import REPOSITORY

MADE = consoles(PAGES)


def test_the_committed_pages_are_what_the_dashboards_make() -> None:
    there = {name: path.read_text(encoding="utf-8") for name, path in committed().items()}

    assert there == MADE, "run: python -m monitoring.consoles"


def test_making_the_pages_twice_gives_the_same() -> None:
    assert consoles(PAGES) == MADE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.uid)
def test_a_page_has_every_panel_of_its_dashboard(page: Page) -> None:
    headings = [unescape(text) for text in re.findall(r"<h3><a .+?>(.+?)</a></h3>", MADE[f"{page.uid}.html"])]

    assert headings == [panel["title"] for panel in json.loads(page.to_json())["panels"] if panel["type"] != "row"]


@pytest.mark.parametrize("name", MADE)
def test_every_block_of_a_template_is_closed(name: str) -> None:
    opened = re.findall(r"{{ (?:range|if) ", MADE[name])

    assert len(opened) == MADE[name].count("{{ end }}")


def test_the_index_leads_to_every_page() -> None:
    assert set(re.findall(r'<li><a href="(.+?)"', MADE["index.html"])) == MADE.keys() - {"index.html"}


@pytest.mark.parametrize("name", MADE)
def test_links_between_pages_lead_somewhere(name: str) -> None:
    folder = PurePosixPath(name).parent
    targets = re.findall(r'href="([\w./-]+\.html)', MADE[name])

    assert [each for each in targets if normpath(folder / each) not in MADE] == []


def test_no_page_leads_to_pages_that_debians_prometheus_does_not_have() -> None:
    texts = [*MADE.values(), *(path.read_text(encoding="utf-8") for path in REPOSITORY.rglob("docs/**/*.md"))]
    texts += [path.read_text(encoding="utf-8") for path in RUNBOOKS.glob("*.md")]

    assert [text for text in texts if re.search(r"(?:9090|href=\")/(?:alerts|targets|rules|status)\b", text)] == []


def test_a_runbook_is_shown_as_text_though_it_looks_like_a_template() -> None:
    page = MADE["runbooks/StreamQueryDown.html"]

    assert "<h1>StreamQueryDown</h1>" in page
    assert "<h2>Mitigation</h2>" in page
    assert "<code" in page


def test_variables_are_inserted_into_a_query() -> None:
    asked = instant_query('a{query=~"$query|", b!~"50%"} / c{table=~"$table"}')

    assert asked == 'query (printf `a{query=~"%s|", b!~"50%%"} / c{table=~"%s"}` $query $table)'


def test_a_query_without_variables_is_unchanged() -> None:
    assert instant_query("rate(a[$__rate_interval])") == "query `rate(a[1m])`"


def test_a_query_for_the_script_does_not_end_its_attribute() -> None:
    assert quoted_for_script('a{query=~"$query"} > 0') == "a{query=~&quot;{{ $query }}&quot;} &gt; 0"


def test_a_panel_links_to_its_queries_with_the_variables_values() -> None:
    assert graph_link(['a{query=~"$query"}', "b"]) == (
        "/graph?g0.expr=a%7Bquery%3D~%22{{ $query }}%22%7D&amp;g0.tab=0&amp;g0.range_input=1h"
        "&amp;g1.expr=b&amp;g1.tab=0&amp;g1.range_input=1h"
    )


def test_a_value_is_bad_from_its_limit_on() -> None:
    assert severity_class(Thresholds(60, 300)) == (
        "{{ if ge .Value 300.000 }}bad{{ else if ge .Value 60.000 }}warn{{ else }}calm{{ end }}"
    )


def test_a_value_that_should_be_large_is_bad_below_its_limit() -> None:
    assert severity_class(Thresholds(0.2, 0.1)).startswith(
        "{{ if lt .Value 0.100 }}bad{{ else if lt .Value 0.200 }}warn"
    )


def test_a_value_with_a_word_has_the_words_rating() -> None:
    found = severity_class(Thresholds(60, 300), (Word(-1, "never", Rating.BAD),))

    assert found.startswith("{{ if eq .Value -1.0 }}bad{{ else }}{{ if ge .Value 300.000 }}bad")


def test_a_legend_names_labels_of_the_series() -> None:
    assert legend("{{query}} p95 <now>") == "{{ .Labels.query }} p95 &lt;now&gt;"


def test_a_value_with_a_text_is_shown_as_that_text() -> None:
    assert formatted(units.NoUnit, (Word(0, "down"),)).startswith("{{ if eq .Value 0.0 }}down{{ else }}")


def test_what_is_not_a_number_is_a_dash() -> None:
    assert formatted(units.BytesIEC) == "{{ if eq .Value .Value }}{{ humanize1024 .Value }}B{{ else }}-{{ end }}"


def test_an_unknown_unit_is_an_error() -> None:
    with pytest.raises(KeyError):
        formatted("furlongs")
