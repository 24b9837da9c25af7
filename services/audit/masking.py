"""Masks what may be personal in the text of a query: every literal but those that can't name a person.

The list names the kept texts, not the masked ones: a name has no form by which it could be recognised. Words outside of
literals, such as the names of tables and columns, are kept. Text that is not SQL is masked too: a query that failed is
in the audit as well. Each character is read a bounded number of times, whatever the text.
"""

import re
from collections.abc import Collection

MASK = "***"
# A number of a player or of a telephone; counts, and the parts of a date, have fewer digits in a row.
_LONG_NUMBER = re.compile(r"\d[\d_]{5,}\d")
_TOKEN = re.compile(
    r"""
      (?P<comment> --[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<text> '(?P<inner>(?:[^']|'')*)(?:'|\Z) )
    | (?P<block> \$\$.*?(?:\$\$|\Z) )
    | (?P<quoted> "(?P<name>(?:[^"]|"")*)(?:"|\Z) )
    | (?P<word> (?:[\w.+]|-(?!-))+(?:@[\w.@-]*)? | @[\w.@-]* )
    """,
    re.VERBOSE | re.DOTALL,
)
_HARMLESS_TEXT = re.compile(
    r"""
      [0-9a-f]{32} | [0-9a-f]{16}  # a pseudonym, and a masked one
    | [+-]?\d{1,6}(?:\.\d{1,6})?\ ?(?:ms|s|m|h|d)?
    | \d{4}-\d{2}(?:-\d{2})?(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)?(?:\ ?(?:UTC|Z|[+-]\d{2}:\d{2}))?
    | %?
    """,
    re.VERBOSE,
)
_HARMLESS_NAME = re.compile(r"[A-Za-z_][\w$]*")
# A statement in a literal: clients send a query with parameters so.
_IMMEDIATE = re.compile(r"\s*EXECUTE\s+IMMEDIATE\s*'(?P<inner>(?:[^']|'')*)(?:'|\Z)", re.IGNORECASE)
# Before a literal they say that it is encoded: X'..' and U&'..'.
_ENCODINGS = frozenset("xX&")


class LiteralMask:
    """Masks literals, but those that are harmless by their form or are among the names that are kept."""

    def __init__(self, kept: Collection[str]) -> None:
        self._kept = frozenset(kept)

    def __call__(self, text: str) -> str:
        """The text with masked literals, comments and quoted names; it need not be valid SQL."""
        immediate = _IMMEDIATE.match(text)
        if immediate is None:
            return _TOKEN.sub(self._masked, text)
        statement = _TOKEN.sub(self._masked, immediate["inner"].replace("''", "'")).replace("'", "''")
        return f"EXECUTE IMMEDIATE '{statement}'{_TOKEN.sub(self._masked, text[immediate.end() :])}"

    def _masked(self, found: "re.Match[str]") -> str:
        token = found[0]
        match found.lastgroup:
            case "comment":
                return f"--{MASK}" if token.startswith("--") else f"/*{MASK}*/"
            case "block":
                return f"$${MASK}$$"
            case "text":
                return token if self._is_harmless(found) else f"'{MASK}'"
            case "quoted":
                name = found["name"]
                is_kept = name in self._kept or (_HARMLESS_NAME.fullmatch(name) and not _LONG_NUMBER.search(name))
                return token if is_kept else f'"{MASK}"'
            case _:
                return MASK if "@" in token or _LONG_NUMBER.search(token) else token

    def _is_harmless(self, found: "re.Match[str]") -> bool:
        if found.string[max(found.start() - 1, 0)] in _ENCODINGS:
            return False
        return found["inner"] in self._kept or _HARMLESS_TEXT.fullmatch(found["inner"]) is not None
