"""The portal reads the values of Prometheus and of metrics pages, and takes only finite numbers."""

import math
import re
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monitoring.grafana.files import GENERATED
from services.portal.dashboard_page import DashboardPages
from services.portal.figures import metric_samples
from services.portal.prometheus import FiguresUnavailableError, samples_of, series_of
from tests.unit.portal.portals import OneSeries, response
from tests.unit.properties import examples

_PATH, _NUMBERS = re.compile(r'<path d="([^"]*)"'), re.compile(r"([ML]-?\d+ -?\d+\.\d)+")
NOW = 1_790_000_000.0
# As Prometheus and its text format write them.
VALUES = st.one_of(st.sampled_from(["NaN", "+Inf", "-Inf"]), st.floats().map(repr))


def test_a_metrics_page_that_is_cut_off_gives_what_comes_before() -> None:
    page = '# TYPE a gauge\na{query="x"} 1\n# TYPE b gauge\nb{query="y"} 2\nb{query="z'

    assert [(name, dict(each.labels), each.value) for name, each in metric_samples(page)] == [("a", {"query": "x"}, 1)]


def test_prometheus_answers_are_parsed() -> None:
    (sample,) = samples_of(response(value=[1.5, "1"]))

    assert (sample.labels, sample.value) == ({"job": "kafka"}, 1.0)


@pytest.mark.parametrize(
    ("body", "problem"), [(b"<html>", "does not respond"), (b'{"status":"error"}', "refuses a query")]
)
def test_a_response_without_values_is_an_error_with_its_reason(body: bytes, problem: str) -> None:
    with pytest.raises(FiguresUnavailableError, match=problem):
        list(samples_of(body))


@examples(200)
@given(values=st.lists(VALUES, min_size=1))
@example(values=["NaN"])
def test_only_finite_values_are_read(values: Sequence[str]) -> None:
    finite = [float(each) for each in values if math.isfinite(float(each))]
    page = "# TYPE a gauge\n" + "".join(f'a{{n="{place}"}} {each}\n' for place, each in enumerate(values))

    series = list(series_of(response(values=[[place, each] for place, each in enumerate(values)])))

    assert [value for each in series for _, value in each.points] == finite
    assert [sample.value for each in values for sample in samples_of(response(value=[0, each]))] == finite
    assert [sample.value for _, sample in metric_samples(page)] == finite


@pytest.mark.parametrize("values", [["1", "NaN", "3"], ["NaN"], ["+Inf", "2", "-Inf"], ["-5", "1e300"]])
def test_every_dashboard_is_drawn_with_numbers_whatever_its_values_are(values: Sequence[str]) -> None:
    pages = DashboardPages(GENERATED, OneSeries(values), lambda: NOW)

    drawn = [path for uid in pages.all for path in _PATH.findall(pages.page(uid))]

    assert [path for path in drawn if not _NUMBERS.fullmatch(path)] == []
    assert bool(drawn) == any(math.isfinite(float(each)) for each in values)
