"""The tables of an HTML page by the names of their columns, so that a test doesn't depend on the columns' order."""

import re
from html import unescape


def rows_of(page: str, caption: str) -> list[dict[str, str]]:
    """Return the texts of each row of the table with a caption, by column; nothing if the page has no such table."""
    found = re.search(rf"<caption>{re.escape(caption)}</caption>(.*?)</table>", page, re.DOTALL)
    if found is None:
        return []
    columns, *rows = [_cells(row) for row in re.findall(r"<tr\b[^>]*>(.*?)</tr>", found[1], re.DOTALL)]
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _cells(row: str) -> list[str]:
    cells = re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", row, re.DOTALL)
    return [unescape(re.sub(r"<[^>]+>", "", cell)).strip() for cell in cells]
