"""What a run of suites says to a person: a line for each suite, and one for each expectation that failed."""

from collections import Counter
from collections.abc import Sequence

from gamelake.quality.check_findings import Status
from gamelake.quality.suites.expectations import Weight
from gamelake.quality.suites.validations import Outcome


def as_text(outcomes: Sequence[Outcome]) -> str:
    """A table of suites, and what failed."""
    titles = dict.fromkeys(each.suite.title for each in outcomes)
    lines = [f"{'suite':<40}{'passed':>8}{'failed':>8}{'skipped':>9}"]
    for title in titles:
        counts = Counter(each.status for each in outcomes if each.suite.title == title)
        numbers = (counts[Status.PASSED], counts[Status.FAILED], counts[Status.SKIPPED])
        lines.append(f"{title:<40}{numbers[0]:>8}{numbers[1]:>8}{numbers[2]:>9}")
    lines += [_failure(each) for each in outcomes if each.status is Status.FAILED]
    return "\n".join(lines)


def in_short(outcomes: Sequence[Outcome]) -> str:
    """The same in a few words."""
    counts = Counter(each.status for each in outcomes)
    weights = Counter(each.expected.weight for each in outcomes if each.status is Status.FAILED)
    told = ", ".join(f"{weights[each]} {each.value}" for each in Weight if weights[each])
    failed = f"{counts[Status.FAILED]} failed" + (f" ({told})" if told else "")
    return f"{counts[Status.PASSED]} passed, {failed}, {counts[Status.SKIPPED]} skipped"


def _failure(outcome: Outcome) -> str:
    expected = outcome.expected
    observed = f"{outcome.observed or 0:,.6g} instead of {expected.bounds.told}"
    detail = f" [{outcome.detail}]" if outcome.detail else ""
    owner = f", ask {expected.owner}" if expected.owner else ""
    return f"FAILED {outcome.suite.title}: {expected.name} ({expected.weight.value}{owner}): {observed}{detail}"
