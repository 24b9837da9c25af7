"""The portal's pages have the figures, run nothing but its questions, and let no text of others become markup."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gamelake.observability.faults import load_faults
from gamelake.serving.sql.query_engine import QueryEngine
from gamelake.serving.sql.questions import Question, load_questions
from monitoring.addresses import runbook_url
from monitoring.grafana.files import GENERATED
from services.portal.app import PortalApp
from services.portal.dashboard_page import DashboardPages
from services.portal.dashboards import LAG
from services.portal.figures import Overview, ServiceHealth, StreamFigures
from services.portal.home import status_part
from services.portal.lineage import NAVIGATION_MARK, script_hashes
from services.portal.practice import Practice, practice_page
from services.portal.question_page import question_page
from services.portal.questions import DuckDbQuestions, QuestionFailedError, QuestionResult, Questions
from services.portal.settings import PortalSettings, QueryLimits
from services.portal.templates import PortalTemplates
from tests.support.html_tables import rows_of
from tests.support.programs import add_program
from tests.unit.portal.portals import EVIL, OWN, QUESTION, SQL, Elements, Figures, OneSeries, app, get
from tools.embedded.service import REPOSITORY

NOON = datetime(2026, 11, 26, 12, 0, 0, tzinfo=UTC)
TEMPLATES = PortalTemplates()


def test_the_first_page_has_tiles_health_the_readers_and_the_links(portal: PortalApp) -> None:
    response = get(portal, "/")
    elements = Elements(response.body)
    links = {link["href"] for link in elements.all("a")}

    assert response.status == 200
    assert "does not respond" in response.body
    tiles = [attributes["class"] for attributes in elements.all("li") if "tile" in (attributes.get("class") or "")]
    assert len(tiles) == 5
    assert {"/questions#product-manager", "/questions#operator", "https://127.0.0.1:8765"} <= links
    assert "gamelake credentials" in response.body


def test_the_list_has_every_question_that_the_engine_can_run_under_its_reader(portal: PortalApp) -> None:
    elements = Elements(get(portal, "/questions").body)
    runnable = [
        each
        for each in load_questions(SQL / "questions").values()
        if each.asked_by == "analyst" and QueryEngine.DUCKDB in each.engines
    ]

    forms = {form["action"] for form in elements.all("form") if form["method"] == "post"}
    assert forms == {f"/questions/{each.name}" for each in runnable}
    assert len(forms) >= 20
    names = [button["aria-label"] for button in elements.all("button") if "aria-label" in button]
    assert len(set(names)) == len(names) == len(forms)
    readers = {section["aria-labelledby"] for section in elements.all("section")}
    assert readers == {each.reader.replace(" ", "-") for each in runnable}


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("retention", {"retention"}),
        ("RETENTION%20day_7_share", {"retention"}),
        ("day+7", None),
        ("no+such+word", set()),
    ],
)
def test_the_search_finds_words_of_title_text_and_sql(portal: PortalApp, search: str, found: set[str] | None) -> None:
    page = get(portal, f"/questions?q={search}").body

    names = {form["action"].split("/")[-1] for form in Elements(page).all("form") if form["method"] == "post"}  # type: ignore[union-attr]
    assert found is None or (found <= names and len(names) < 10)
    assert f"{len(names)} of " in page


def test_a_search_and_the_name_of_a_game_do_not_become_markup(portal: PortalApp) -> None:
    for address in ("/questions?q=%3Cscript%3E%22", "/?game=%3Cscript%3E%22", "/portfolio?game=%3Cscript%3E"):
        page = get(portal, address).body

        assert "<script>" not in page
        Elements(page)


@pytest.mark.parametrize("path", ["/", "/questions", "/practice"])
def test_every_page_has_the_navigation_which_marks_the_page_that_is_open(settings: PortalSettings, path: str) -> None:
    elements = Elements(get(app(replace(settings, faults=REPOSITORY / "monitoring/faults.yaml")), path).body)

    marked = [link["href"] for link in elements.all("a") if link.get("aria-current") == "page"]
    assert marked == [path]
    assert {"/", "/questions", "/practice", "/lineage", "/report"} <= {link["href"] for link in elements.all("a")}
    assert [nav["aria-label"] for nav in elements.all("nav")] == ["Portal"]
    assert len(elements.all("main")) == len(elements.all("h1")) == 1


def test_a_page_that_asks_for_a_password_has_its_user_and_a_command_to_copy_that_prints_it(portal: PortalApp) -> None:
    home = get(portal, "/").body

    copied = [button["data-copy"] for button in Elements(home).all("button") if "data-copy" in button]
    assert copied[-1] == "gamelake credentials trino-analyst"
    assert '<td>analyst</td><td><span class="command"><code>gamelake credentials trino-analyst</code>' in home


def test_the_report_of_the_demo_is_there_once_it_is_written(portal: PortalApp, tmp_path: Path) -> None:
    before = get(portal, "/report")
    (tmp_path / "report.html").write_text(f"{NAVIGATION_MARK}<p>rows</p><script>draw()</script>")
    after = get(portal, "/report")

    assert (before.status, after.status) == (404, 200)
    assert after.body.endswith("<p>rows</p><script>draw()</script>")
    assert '<a href="/report" aria-current="page">' in after.body
    assert "make demo writes it" in before.body
    assert f"script-src {script_hashes(after.body)[0]};" in after.policy


def test_figures_are_shown_and_unknown_ones_are_named_so() -> None:
    streams = (
        StreamFigures(stream="ingest_events", is_up=True, records_per_second=1234.4, lag=5, seconds_behind=0.25),
        StreamFigures(stream="live_ops", is_up=False),
    )

    part = status_part(Overview((), streams, "Prometheus does not respond: X"), now=NOON)

    first = rows_of(part, "Streams with rate, lag and freshness")[0]
    assert (first["records/s"], first["lag, records"], first["behind"]) == ("1,234", "5", "0.2 s")
    assert '<span class="good">0.2 s</span>' in part
    assert part.count("unknown") == 3
    assert "is down" in part
    assert "Prometheus does not respond: X" in part
    assert "As of 12:00:00 UTC." in part


@pytest.mark.parametrize(
    ("is_up", "seconds", "shown"),
    [
        (True, 4.0, '<span class="good">runs</span>'),
        (True, None, '<span class="good">runs</span>'),
        (True, 61.0, '<span class="late">falls behind</span>'),
        (True, 1_067.8, '<span class="bad">is behind</span>'),
        (True, 1_067.8, '<span class="bad">17 min 48 s</span>'),
        (False, 1_067.0, '<span class="bad">is down</span>'),
    ],
)
def test_a_stream_that_runs_far_behind_is_not_in_the_colour_of_a_good_one(
    is_up: bool, seconds: float | None, shown: str
) -> None:
    stream = StreamFigures(stream="ingest_events", is_up=is_up, seconds_behind=seconds)

    assert shown in status_part(Overview((), (stream,)), now=NOON)


def test_a_stream_is_behind_on_the_portal_from_where_on_the_alert_fires() -> None:
    rules = (REPOSITORY / "monitoring/prometheus/rules/stream.yml").read_text(encoding="utf-8")
    late = StreamFigures(stream="ingest_events", is_up=True, seconds_behind=301)

    assert "gamelake_stream_seconds_behind) > 300" in rules
    assert "is behind" in status_part(Overview((), (late,)), now=NOON)
    assert "is behind" not in status_part(Overview((), (replace(late, seconds_behind=300),)), now=NOON)


def test_alerts_that_fire_lead_to_their_runbooks_and_none_is_said_to_be_none() -> None:
    fires = status_part(Overview((), (), alerts=("GatewayDown",)))

    assert '<a href="/documents/monitoring/runbooks/GatewayDown/">GatewayDown</a>' in fires
    assert "No alert fires." in status_part(Overview((), (), alerts=()))
    assert "Alerts" not in status_part(Overview((), ()))


def test_the_page_of_load_and_faults_is_there_where_faults_or_a_switchboard_are_given(
    settings: PortalSettings, portal: PortalApp
) -> None:
    faults = REPOSITORY / "monitoring/faults.yaml"
    with_faults = app(replace(settings, faults=faults))

    assert '<a href="/practice">Load and faults</a>' in get(with_faults, "/").body
    page = get(with_faults, "/practice").body
    assert all(f"<code>gamelake fault on {name}</code>" in page for name in load_faults(faults))
    assert get(with_faults, "/practice/status").status == 200
    assert get(portal, "/practice").status == 404
    assert "/practice" not in get(portal, "/").body


def test_the_docs_site_is_a_part_of_the_portal(documented: PortalApp) -> None:
    first = get(documented, "/documents/")

    assert first.file == b"<p>Welcome</p><script>run()</script>"
    assert first.content_type == "text/html; charset=utf-8"
    assert script_hashes("<script>run()</script>")[0] in first.policy
    assert get(documented, "/documents/guide/").file == b"<p>Guide</p>"
    assert get(documented, "/documents/picture.png").content_type == "image/png"
    assert '<a href="/documents/">Documents</a>' in get(documented, "/").body


def test_a_runbook_opens_as_text_until_the_docs_site_is_built(settings: PortalSettings, tmp_path: Path) -> None:
    portal = app(replace(settings, docs=tmp_path, runbooks=REPOSITORY / "monitoring/runbooks"))
    path = urlsplit(runbook_url("GatewayDown")).path

    as_text = get(portal, path)
    (tmp_path / "monitoring/runbooks/GatewayDown").mkdir(parents=True)
    (tmp_path / "monitoring/runbooks/GatewayDown/index.html").write_text("<h1>GatewayDown</h1>")

    assert as_text.content_type == "text/plain; charset=utf-8"
    assert (as_text.file or b"").startswith(b"# GatewayDown\n")
    assert get(portal, path).file == b"<h1>GatewayDown</h1>"
    assert get(portal, "/documents/monitoring/runbooks/../../faults/").status == 404
    assert get(portal, "/documents/monitoring/runbooks/None/").status == 404


def test_no_text_becomes_markup() -> None:
    page = question_page(QUESTION, TEMPLATES, QuestionResult((EVIL,), ((EVIL,),), is_cut=True), EVIL, remedy=EVIL)

    assert [script["src"] for script in Elements(page).all("script")] == ["/portal.js"]
    assert EVIL not in page
    assert "The first 1 row; there are more" in page


def test_tables_have_captions_and_headings_for_screen_readers(portal: PortalApp) -> None:
    result = QuestionResult(("a",), (("1",),), is_cut=False)
    pages = [get(portal, "/").body, get(portal, "/questions").body, question_page(QUESTION, TEMPLATES, result)]
    elements = [found for page in pages for found in Elements(page).found]
    tables = sum(tag == "table" for tag, _ in elements)

    assert tables == sum(tag == "caption" for tag, _ in elements) == 8
    assert all(attributes["scope"] in {"col", "row"} for tag, attributes in elements if tag == "th")


def test_a_value_of_a_card_has_the_name_of_its_column() -> None:
    stream = StreamFigures(stream="ingest_events", is_up=True, records_per_second=1.0, lag=5, seconds_behind=0.25)
    pages = [
        status_part(Overview((), (stream,))),
        practice_page(
            Practice(Overview((), ()), None, list(load_faults(REPOSITORY / "monitoring/faults.yaml").values()))
        ),
        DashboardPages(GENERATED, OneSeries(["1"])).page(LAG),
    ]

    cards = [
        table for page in pages for table in re.findall(r'<table class="[^"]*cards">(.*?)</table>', page, re.DOTALL)
    ]
    assert len(cards) >= 4
    for table in cards:
        _, *columns = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', table)
        for row in re.findall(r'<th scope="row">(.*?)</tr>', table, re.DOTALL):
            assert re.findall(r'<td\b[^>]* data-label="([^"]*)"', row) == columns


def test_a_row_that_does_not_respond_has_the_command_that_restarts_it() -> None:
    kafka = ServiceHealth("kafka", is_healthy=False, remedy="compose/stack.sh restart kafka")

    assert 'data-copy="compose/stack.sh restart kafka"' in status_part(Overview((kafka,), ()))
    assert "data-copy" not in status_part(Overview((replace(kafka, is_healthy=True),), ()))


def test_responses_and_questions_are_counted_and_health_checks_are_not(
    portal: PortalApp, settings: PortalSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_self: Questions, _question: Question) -> QuestionResult:
        raise QuestionFailedError("Trino does not respond")

    question = next(iter(Questions(settings).all()))
    monkeypatch.setattr(Questions, "run", failing)
    for path in ("/healthz", "/", "/nothing", "/metrics"):
        get(portal, path)
    portal.respond("POST", f"/questions/{question}", OWN)

    page = (get(portal, "/metrics").file or b"").decode().splitlines()

    assert 'gamelake_portal_responses_total{status="200"} 1.0' in page
    assert 'gamelake_portal_responses_total{status="404"} 1.0' in page
    assert 'gamelake_portal_responses_total{status="502"} 1.0' in page
    assert 'gamelake_portal_questions_total{outcome="failed"} 1.0' in page
    assert 'gamelake_portal_questions_total{outcome="ok"} 0.0' in page
    assert "gamelake_portal_question_seconds_count 1.0" in page


def test_pages_run_no_script_but_their_own(portal: PortalApp) -> None:
    policy = get(portal, "/").policy

    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "unsafe" not in policy
    assert get(portal, "/portal.js").content_type.startswith("text/javascript")
    for path in ("/portal.js", "/portal.css"):
        assert "http" not in get(portal, path).body


def test_the_lineage_may_be_a_file_that_is_drawn_later(settings: PortalSettings, tmp_path: Path) -> None:
    file = tmp_path / "lineage.html"
    portal = app(replace(settings, has_lakehouse=False, lineage=file))

    missing = get(portal, "/lineage")
    file.write_text(f"{NAVIGATION_MARK}<p>Drawn</p><script>draw()</script>")
    drawn = get(portal, "/lineage")

    assert missing.status == 503
    assert 'data-copy="make portal"' in missing.body
    assert drawn.body.endswith("<p>Drawn</p><script>draw()</script>")
    assert '<a href="/">Gamelake</a>' in drawn.body
    assert script_hashes("<script>draw()</script>")[0] in drawn.policy
    assert "/lineage" in {link["href"] for link in Elements(get(portal, "/").body).all("a")}


def test_scripts_of_the_lineage_are_named_by_their_hashes() -> None:
    # echo -n 'alert(1)' | openssl dgst -sha256 -binary | base64
    page = '<script type="application/json">{}</script><script>alert(1)</script>'

    assert script_hashes(page) == ["'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"]


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("kill -KILL $$", "ended by SIGKILL"),
        ("echo '{\"a\":1}'; kill -SEGV $$", "ended by SIGSEGV"),
        ('printf \'{"a":1}\\n{"a"\'; kill -KILL $$', "ended by SIGKILL"),
        ('printf \'{"a":1}\\n{"a"\'', "truncated"),
        ("echo no; exit 1", "the query failed"),
    ],
)
def test_a_question_whose_process_ends_before_its_result_is_an_error(
    script: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = add_program(tmp_path / "python", f"#!/bin/bash\n{script}\n")
    monkeypatch.setattr("services.portal.questions.sys.executable", str(program))

    with pytest.raises(QuestionFailedError, match=problem):
        DuckDbQuestions(SQL).run(QUESTION, QueryLimits())


def test_more_rows_than_are_shown_are_a_result_although_the_process_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = add_program(tmp_path / "python", "#!/bin/bash\nwhile echo '{\"a\":1}'; do :; done\n")
    monkeypatch.setattr("services.portal.questions.sys.executable", str(program))

    result = DuckDbQuestions(SQL).run(QUESTION, QueryLimits(rows=5))

    assert (len(result.rows), result.is_cut) == (5, True)


def test_a_question_whose_result_has_no_rows_is_a_page_that_says_so(
    portal: PortalApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = add_program(tmp_path / "python", "#!/bin/bash\nexit 0\n")
    monkeypatch.setattr("services.portal.questions.sys.executable", str(program))

    response = portal.respond("POST", "/questions/retention", OWN)

    assert response.status is HTTPStatus.OK
    assert "There are no rows." in response.body


@pytest.mark.parametrize("path", ["/", "/status"])
def test_a_page_that_fails_for_any_reason_is_a_response(
    path: str, settings: PortalSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    portal = app(settings)
    monkeypatch.setattr(Figures, "overview", lambda _: {"a": 1}["a bug"])

    assert portal.respond("GET", path, OWN).status is HTTPStatus.INTERNAL_SERVER_ERROR
