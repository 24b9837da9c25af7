"""Constructions that stop a reader, as patterns: what each finds, and what to write in its place.

`test_words.py` has single words. A pattern with more than one false alarm in five doesn't belong here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.prose import Passage


@dataclass(frozen=True)
class Construction:
    """One pattern of prose.

    Attributes:
        pattern: a regular expression, from the beginning of a word on, in either case.
        instead: what to write.
        found: a sentence that it finds.
        kept: a sentence like it that is plain English.
        only_first: True if it is only looked for at the beginning of docstrings.
    """

    pattern: str
    instead: str
    found: str
    kept: str
    only_first: bool = False

    def search(self, passage: Passage) -> Iterator[re.Match[str]]:
        """Yield the places in a passage that have the construction."""
        pattern = re.compile(rf"\b(?:{self.pattern})", re.IGNORECASE)
        if not self.only_first:
            yield from pattern.finditer(passage.text)
        elif passage.docstring and (first := pattern.match(passage.text)):
            yield first


_BE = r"(?:is|are|was|were)"
_TO_BE = r"(?:is|are|was|were|be|been)"

CONSTRUCTIONS = (
    Construction(
        rf"(?<!there ){_TO_BE} no (?!longer\b|more than\b|less than\b|fewer than\b|use\b|good\b)",
        "'is not a ...', 'has no ...'",
        "the alerts are no list",
        "there is no list, and it is no longer used",
    ),
    Construction(
        rf"(?<!there ){_BE} (?-i:none)\b(?! of)",
        "'is not one', 'is missing'",
        "the surrogates are characters that are none",
        'Return "" if there are none.',
    ),
    Construction(
        r"gives? (?:whether|how|what|which|where|back)\b|; gives ",
        "'returns', or name what is returned",
        "it gives whether the query was restarted",
        "the page gives an example",
    ),
    Construction(
        r"(?:of|by|with|than|beyond|from|in|against) what\b(?! to\b)",
        "a noun for the thing: 'of the records', 'than the retention'",
        "it keeps no more of what the game sent",
        "a list of what to do",
    ),
    Construction(
        r"(?<=, )(?:and )?of (?:which|whom) (?!one\b|two\b|three\b|four\b|five\b|half\b|at (?:least|most)\b|\d|X)",
        "a sentence of its own",
        "a key, of which the last value counts",
        "six orders, of which three show the fault; each of which is checked",
    ),
    Construction(
        r"(?:go|goes|going|went|gone) on\b(?! to\b)|goes out of|go out of",
        "'continue', 'resume', 'leave'",
        "all other tables go on",
        "all other tables continue",
    ),
    Construction(
        r"(?:took|taken|taking) (?:it |them )?in\b(?! (?:all|total|memory|blocks|a |an |the ))|(?<!\w )Take in\b"
        r"|takes? (?:it|them) in\b",
        "'receives', 'accepts', 'ingests'",
        "when the platform took it in",
        "the memory that is taken in total",
    ),
    Construction(
        r"(?:rows?|files?|events?|values?|versions?|tables?|names?|records?|it|they|that|which)"
        r" (?:comes?|came|coming) (?:by(?! default)|back(?! to)|along)\b",
        "'arrives from', 'is restored', 'is passed by'",
        "rows that come back after a restore; events come by Kafka",
        "players who come back after a week",
    ),
    Construction(
        r"(?:brings?|brought|bringing) (?:back|along|to an end)\b",
        "'restores', 'includes', 'completes'",
        "a restore brings back the rows",
        "the script brings up the stack",
    ),
    Construction(
        r"as (?!it |they |soon |long |far |well |many |much )(?:the |its |their )?\w+ "
        r"(?:lacks?|lacked|failed|stalled|stopped|went)\b",
        "'because ...', 'since ...'",
        "could not be evaluated, as columns lacked",
        "as soon as the columns are known; stored as it came",
    ),
    Construction(
        r"so (?:many|much)\b(?! (?:\w+ )?(?:that|as|more|less|faster|slower|longer|larger|smaller)\b)",
        "the number's name: 'this many', 'the number of ...', 'up to N'",
        "it waits for so many records",
        "so many tables that a listing takes minutes",
    ),
    Construction(
        r"some (?:\d|(?:ten|twenty|thirty|forty|fifty|hundred)\b)",
        "'about 20'",
        "a suite of some 20 expectations",
        "a suite of about 20 expectations",
    ),
    Construction(
        r"how surely|no chance\b|which become more|become more as",
        "the measure: 'how unlikely it is to be noise'; 'each new game adds some'",
        "how surely it is no chance",
        "how unlikely the drop is by chance",
    ),
    Construction(
        r"but for\b|(?:none|nothing|no \w+) but\b(?! (?:the|a|it|its|not)\b(?! (?:few|last|newest)))",
        "'except', 'only'",
        "none but those that were not counted; all but for one",
        "all but one; it has no rows but the count is kept",
    ),
    Construction(
        rf"{_TO_BE} (?:had\b(?! )|to be had|wanted\b|looked for|known of\b|heard of|said of|spoken of|waited for)"
        r"|(?:to be|to get) had\b",
        "the actor and the verb: 'the job waits for ...', 'is available', 'is known about'",
        "where none is to be had, nothing is known of it",
        "if none is available, nothing is known about it",
    ),
    Construction(
        rf"{_TO_BE} (?:not )?whole\b|anew\b",
        "'complete', 'truncated'; 'again', 'from scratch'",
        "the file is not whole and is made anew",
        "the file is truncated and is written again; the whole file",
    ),
    Construction(
        rf"{_BE} (?:not|no longer) (?:yet )?there\b|{_BE} there (?:already|yet)\b|{_BE} already there\b",
        "'is missing', 'does not exist', 'exists already'",
        "the checkpoint is not there",
        "the checkpoint is missing, and there are others",
    ),
    Construction(r"key figures?\b", "'metric', 'KPI'", "a key figure of your own", "figures of the key"),
    Construction(
        r"no more(?=[.,;:)]| \Z)|(?<!\w )no more is known",
        "'no longer', 'nothing else'",
        "Spark runs the query no more.",
        "Spark no longer runs the query, and no more than one other",
    ),
    Construction(
        r"(?-i:Of) (?!course\b|\d)(?=\w+ )",
        "begin with the subject",
        "Of a name that comes twice the last value counts",
        "For duplicate keys, the last value wins",
    ),
    Construction(
        r"(?:no|any) other one\b|(?:let|lets) go of\b|as ever\b|(?<!has )(?<!have )(?<!had )to know of\b",
        "'no other', 'releases'",
        "restarts the programs that import it, and no other one",
        "restarts only the programs that import it",
    ),
    Construction(
        r"(?:one|two|three|four|a|an) (?:third|quarter|fifth|sixth|seventh|eighth|ninth|tenth|fourteenth)s?"
        r" of an? (?:minute|second|hour)"
        r"|(?:two|three|four|five|six|seven) (?:fifths|sixths|sevenths|eighths|ninths|tenths)\b",
        "figures: '15 seconds', '80 %'",
        "about a quarter of a minute old, four fifths of it",
        "about 15 seconds behind, 80 % of it",
    ),
    Construction(
        r"(?:Whether|How|Gives|Says)\b",
        "a verb: 'Return True if ...', 'Return the number of ...'",
        "Whether the version had no players in the whole window.",
        "Return True if the version had no players in the whole window.",
        only_first=True,
    ),
)
