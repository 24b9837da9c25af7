"""Read the prose of a repository's file: comments, docstrings, messages and documents, without code.

A `Passage` is a paragraph: neighbouring lines as one text, so that a sentence that is wrapped is found too.
"""

import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

# Code inside prose stands as X: a name is not a word of a sentence.
_CODE = re.compile(r"``[^`]*``|`[^`]*`|(?<=\])\([^)]*\)|<[^<>\n]*>|\{[^{}\n]*\}")
_ESCAPE = re.compile(r"\\[nt]")
_QUOTED = re.compile(r"\"([^\"]* [^\"]*)\"|'([^']* [^']*)'")
_MARKDOWN_START = re.compile(r"\s*(?:#|\||[-*] |\d+\. )")
_YAML_START = re.compile(r"(\s*(?:- )?[\w\"'./-]+(?::| =)(?:\s|$)|\s*- )")
_COMMENT = {".java": r"\s*(?://+|/?\*+)(.*)", ".rs": r"\s*//+!?(.*)", ".proto": r".*?//(.*)", ".sql": r".*?--(.*)"}
_NOT_PROSE = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


@dataclass(frozen=True)
class Passage:
    """One paragraph of prose.

    Attributes:
        text: its lines, joined by spaces.
        starts: the offset in `text` of each line.
        lines: the line numbers in the file, one for each offset.
        docstring: True if it begins a string in triple quotes.
    """

    text: str
    starts: tuple[int, ...]
    lines: tuple[int, ...]
    docstring: bool = False

    def line(self, offset: int) -> int:
        """Return the line number in the file of an offset in the text."""
        return self.lines[bisect_right(self.starts, offset) - 1]


@dataclass(frozen=True)
class _Line:
    number: int
    text: str
    begins: bool = False
    ends: bool = False
    docstring: bool = False


def passages(suffix: str, text: str) -> Iterator[Passage]:
    """Yield the paragraphs of prose of a file with the suffix, such as `.md`, in order."""
    paragraph: list[_Line] = []
    for line in _lines(suffix, text):
        if paragraph and (line.begins or not line.text.strip() or line.number > paragraph[-1].number + 1):
            yield _passage(paragraph)
            paragraph = []
        if line.text.strip():
            paragraph.append(line)
        if paragraph and line.ends:
            yield _passage(paragraph)
            paragraph = []
    if paragraph:
        yield _passage(paragraph)


def _passage(paragraph: list[_Line]) -> Passage:
    text, starts = "", []
    for line in paragraph:
        starts.append(len(text))
        text += _ESCAPE.sub(" ", line.text).strip() + " "
    # The replacement keeps the length, and with it the offsets.
    plain = _CODE.sub(lambda code: "X".ljust(len(code[0])) if code[0][0] != "(" else " " * len(code[0]), text)
    return Passage(plain, tuple(starts), tuple(line.number for line in paragraph), paragraph[0].docstring)


def _lines(suffix: str, text: str) -> Iterator[_Line]:
    if suffix == ".py":
        return _of_python(text)
    if suffix == ".md":
        return _of_markdown(text)
    if suffix in _COMMENT:
        return _of_comments(re.compile(_COMMENT[suffix]), text)
    return _of_settings(text) if suffix in {".yaml", ".yml", ".toml"} else _of_script(text)


def _of_python(text: str) -> Iterator[_Line]:
    follows = False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield _Line(token.start[0], token.string.lstrip("#:"), begins=not follows)
        elif token.type == tokenize.STRING:
            yield from _of_string(token, follows)
        elif token.type in _NOT_PROSE:
            continue
        follows = token.type in (tokenize.COMMENT, tokenize.STRING)


def _of_string(token: tokenize.TokenInfo, follows: bool) -> Iterator[_Line]:
    body = token.string.lstrip("rRbBfFuU")
    quotes = body[:3] if body[:3] in ('"""', "'''") else body[:1]
    for number, line in enumerate(body[len(quotes) : -len(quotes)].split("\n"), start=token.start[0]):
        first = number == token.start[0]
        yield _Line(number, line, begins=first and not follows, docstring=first and len(quotes) == 3)


def _of_markdown(text: str) -> Iterator[_Line]:
    fenced = False
    for number, line in enumerate(text.split("\n"), start=1):
        fence = line.lstrip().startswith("```")
        if not fenced and not fence:
            start = _MARKDOWN_START.match(line)
            yield _Line(number, line, begins=bool(start), ends=bool(start) and line.lstrip()[0] in "#|")
        fenced ^= fence


def _of_comments(comment: re.Pattern[str], text: str) -> Iterator[_Line]:
    for number, line in enumerate(text.split("\n"), start=1):
        found = comment.match(line)
        yield _Line(number, found[1] if found else " ".join(map("".join, _QUOTED.findall(line))), begins=not found)


def _of_settings(text: str) -> Iterator[_Line]:
    for number, line in enumerate(text.split("\n"), start=1):
        start = _YAML_START.match(line)
        yield _Line(number, line[start.end() :] if start else line.lstrip().lstrip("#"), begins=bool(start))


def _of_script(text: str) -> Iterator[_Line]:
    for number, line in enumerate(text.split("\n"), start=1):
        is_comment = line.lstrip().startswith("#")
        prose = line.lstrip().lstrip("#") if is_comment else " ".join(map("".join, _QUOTED.findall(line)))
        yield _Line(number, prose, begins=not is_comment)
