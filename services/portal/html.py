"""The frame and the elements of the portal's pages: complete without a script, for keyboards and screen readers."""

from collections.abc import Iterable, Sequence
from html import escape
from string import Template

_FRAME = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/portal.css">
<script src="/portal.js" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header><a href="/">Gamelake</a></header>
<main id="content" tabindex="-1">
$body
</main>
</body>
</html>
""")
_UNKNOWN = "unknown"


def page(title: str, body: str) -> str:
    """Render a whole page; `title` is text, `body` is HTML."""
    return _FRAME.substitute(title=escape(title), body=body)


def problem_page(title: str, text: str) -> str:
    """Render a page with a sentence."""
    return page(f"{title} - Gamelake", f'<h1>{escape(title)}</h1>\n<p>{escape(text)}</p>\n<p><a href="/">Home</a></p>')


def refreshed(part: str, source: str) -> str:
    """Render a part of a page that the script replaces every few seconds by the response of `source`."""
    return f'<div id="status" data-source="{escape(source)}">{part}</div>'


def section(name: str, title: str, content: str) -> str:
    """Render a section with a heading, to which `#name` leads; `content` is HTML."""
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>{content}</section>'


def state(is_good: bool, good: str, bad: str) -> str:
    """Render one of two words in the colour of a good or of a bad state."""
    return f'<span class="good">{good}</span>' if is_good else f'<span class="bad">{bad}</span>'


def number(value: float | None, digits: int = 0) -> str:
    """Render a number with thousands apart; None is unknown."""
    return _UNKNOWN if value is None else f"{value:,.{digits}f}"


def link(address: str, text: str) -> str:
    """Render a link."""
    return f'<a href="{escape(address)}">{escape(text)}</a>'


def button(action: str, text: str, name: str, busy: str, *, is_pressed: bool | None = None) -> str:
    """Render a button that posts an empty form.

    Args:
        action: the path.
        text: its text.
        name: what a screen reader says, so unlike the page's other buttons.
        busy: what it says until the response is there.
        is_pressed: for one that is the present choice, or another; None: it is not a choice.
    """
    pressed = "" if is_pressed is None else f' aria-pressed="{str(is_pressed).lower()}"'
    return (
        f'<form method="post" action="{escape(action)}">'
        f'<button aria-label="{escape(name)}" data-busy="{escape(busy)}"{pressed}>{escape(text)}</button></form>'
    )


def copied(command: str) -> str:
    """Render a command, with a button that copies it where the browser lets the page's script do so."""
    name = escape(command)
    return (
        f'<code>{name}</code> <button type="button" class="copy" data-copy="{name}" aria-label="Copy: {name}" hidden>'
        "Copy</button>"
    )


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers_from: int | None = None,
    region: str = "",
) -> str:
    """Render a table of cells that are HTML; it scrolls by the keyboard where it is wider than the window.

    Args:
        caption: text.
        columns: their headings, as HTML.
        rows: the first cell of each is the row's heading.
        numbers_from: the first of the columns with numbers.
        region: what a screen reader calls the table's region, if the page has two tables with this caption.
    """
    head = "".join(f'<th scope="col"{_style(place, numbers_from)}>{name}</th>' for place, name in enumerate(columns))
    body = "".join(
        f"<tr>{''.join(_cell(place, cell, numbers_from) for place, cell in enumerate(row))}</tr>" for row in rows
    )
    return (
        f'<div class="scroll" role="region" aria-label="{escape(region or caption)}" tabindex="0"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(place: int, cell: str, numbers_from: int | None) -> str:
    if place == 0:
        return f'<th scope="row">{cell}</th>'
    return f"<td{_style(place, numbers_from)}>{cell}</td>"


def _style(place: int, numbers_from: int | None) -> str:
    return ' class="number"' if numbers_from is not None and place >= numbers_from else ""
