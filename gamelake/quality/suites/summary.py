"""The printed summary of a validation: a line for each suite, and one for each failed expectation."""

from collections import Counter
from collections.abc import Sequence

from gamelake.quality.check_findings import CheckStatus
from gamelake.quality.suites.expectations import Weight
from gamelake.quality.suites.validations import ExpectationResult


def summary_table(outcomes: Sequence[ExpectationResult]) -> str:
    """Render a table of suites, and the failed expectations."""
    titles = dict.fromkeys(each.suite.title for each in outcomes)
    lines = [f"{'suite':<40}{'passed':>8}{'failed':>8}{'skipped':>9}"]
    for title in titles:
        counts = Counter(each.status for each in outcomes if each.suite.title == title)
        numbers = (counts[CheckStatus.PASSED], counts[CheckStatus.FAILED], counts[CheckStatus.SKIPPED])
        lines.append(f"{title:<40}{numbers[0]:>8}{numbers[1]:>8}{numbers[2]:>9}")
    lines += [_failure(each) for each in outcomes if each.status is CheckStatus.FAILED]
    return "\n".join(lines)


def one_line_summary(outcomes: Sequence[ExpectationResult]) -> str:
    """Render the counts as one line."""
    counts = Counter(each.status for each in outcomes)
    weights = Counter(each.expected.weight for each in outcomes if each.status is CheckStatus.FAILED)
    by_weight = ", ".join(f"{weights[each]} {each.value}" for each in Weight if weights[each])
    failed = f"{counts[CheckStatus.FAILED]} failed" + (f" ({by_weight})" if by_weight else "")
    return f"{counts[CheckStatus.PASSED]} passed, {failed}, {counts[CheckStatus.SKIPPED]} skipped"


def _failure(outcome: ExpectationResult) -> str:
    expected = outcome.expected
    computed = outcome.observed is not None
    observed = f"{outcome.observed:,.6g} instead of {expected.bounds.text}" if computed else "it was not computed"
    detail = f" [{outcome.detail}]" if outcome.detail else ""
    owner = f", ask {expected.owner}" if expected.owner else ""
    return f"FAILED {outcome.suite.title}: {expected.name} ({expected.weight.value}{owner}): {observed}{detail}"
