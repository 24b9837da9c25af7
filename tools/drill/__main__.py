"""Practises recoveries on the running stack: `python -m tools.drill [NAME...]`, all of them by default.

Breaks the stack on purpose, on this machine: never where data matters. Prints each drill with its time against its
bound, leaves build/drill.json, and ends with 1 if one fails or is too slow.
"""

import argparse
import sys
from collections.abc import Sequence

import msgspec

from gamelake.program import FAILED, OK, run
from tools.drill.environment import Ground
from tools.drill.recoveries import DRILLS, Drill
from tools.drill.runner import Outcome, run_drill
from tools.embedded.service import REPOSITORY

_RESULTS = REPOSITORY / "build" / "drill.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the drills that were asked for."""
    drills = _asked_for(arguments)
    ground = Ground.of_the_stack()
    outcomes: list[Outcome] = []
    _RESULTS.parent.mkdir(exist_ok=True)
    for drill in drills:
        outcomes.append(_practised(drill, ground))
        _RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(outcomes)))
    print(_table(outcomes))
    return OK if all(outcome.is_good for outcome in outcomes) else FAILED


def _asked_for(arguments: Sequence[str] | None) -> list[Drill]:
    parser = argparse.ArgumentParser(
        prog="python -m tools.drill", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {drill.name:<18} {drill.does}" for drill in DRILLS),
    )  # fmt: skip
    parser.add_argument("names", nargs="*", metavar="NAME", help="which drills; default: all")
    names = parser.parse_args(arguments).names
    known = {drill.name: drill for drill in DRILLS}
    if unknown := [name for name in names if name not in known]:
        parser.error(f"there is no drill '{unknown[0]}'; these are: {', '.join(known)}")
    return [known[name] for name in names] or list(DRILLS)


def _practised(drill: Drill, ground: Ground) -> Outcome:
    print(f"{drill.name}: {drill.does}", flush=True)
    outcome = run_drill(drill, ground, lambda step: print(f"  {step}", flush=True))
    print(f"  recovered in {outcome.seconds:.1f} s of {outcome.bound_seconds:.0f} s", flush=True)
    for problem in outcome.problems:
        print(f"  PROBLEM {problem}", flush=True)
    return outcome


def _table(outcomes: Sequence[Outcome]) -> str:
    lines = [f"{'drill':<20}{'seconds':>9}{'bound':>7}  steps"]
    for each in outcomes:
        steps = ", ".join(f"{step} {seconds:.1f}" for step, seconds in each.steps.items())
        verdict = "ok" if each.is_good else "FAILED"
        lines.append(f"{each.name:<20}{each.seconds:>9.1f}{each.bound_seconds:>7.0f}  {verdict}: {steps}")
    return "\n".join(lines)


if __name__ == "__main__":
    run(lambda: main(sys.argv[1:]))
