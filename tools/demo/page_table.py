"""Tables of the page."""

from collections.abc import Iterable, Sequence
from html import escape


def page_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names what the others say of it."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
