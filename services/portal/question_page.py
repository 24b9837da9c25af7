"""The page of a question, and the search of the list of questions."""

from collections.abc import Iterable

from gamelake.serving.sql.questions import Question
from services.portal.questions import QuestionResult
from services.portal.result_view import view_of
from services.portal.templates import PortalTemplates

_ADDRESS = "/questions"


def question_page(
    question: Question,
    templates: PortalTemplates,
    result: QuestionResult | None = None,
    problem: str = "",
    remedy: str = "",
) -> str:
    """Render a question with its statement, and its result or why there is none, once it was run."""
    view = None if result is None else view_of(question.name, question.title, result)
    columns = view.columns if view else ()
    return templates.page(
        "question.html",
        _ADDRESS,
        question=question,
        view=view,
        numbers=[place for place, column in enumerate(columns) if column.is_number],
        moments=[place for place, column in enumerate(columns) if column.is_moment],
        problem=problem,
        remedy=remedy,
    )


def found_by(search: str, questions: Iterable[Question]) -> list[Question]:
    """Return the questions that have every word of a search in their title, grain, reader or SQL."""
    words = search.lower().split()
    return [
        each
        for each in questions
        if all(word in f"{each.name} {each.grain} {each.reader} {each.sql}".lower() for word in words)
    ]
