"""Practises recoveries on the running stack: `python -m tools.drill [NAME...]`, all drills by default.

It damages the local stack on purpose: never run it where data matters. Prints the time and the time limit of each
drill, writes build/drill.json, and exits with 1 if a drill fails or takes too long.
"""

import argparse
import sys
from collections.abc import Sequence

import msgspec

from gamelake.command import add_confirmation, command_parser, is_confirmed, one_of
from gamelake.program import FAILED, OK, run
from tools.drill.environment import DrillEnvironment
from tools.drill.recoveries import DRILLS, Drill
from tools.drill.runner import DrillResult, run_drill
from tools.embedded.service import REPOSITORY

_RESULTS = REPOSITORY / "build" / "drill.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected drills, after asking."""
    options = _parser().parse_args(arguments)
    drills = [drill for name in options.names for drill in DRILLS if drill.name == name] or list(DRILLS)
    print("These damage the running stack, and may remove data that is in it:")
    for drill in drills:
        print(f"  {drill.name}: {drill.description}")
    if options.dry_run:
        return OK
    if not (options.yes or is_confirmed("Run them?")):
        print("Nothing was damaged.")
        return FAILED
    environment = DrillEnvironment.of_running_stack()
    results: list[DrillResult] = []
    _RESULTS.parent.mkdir(exist_ok=True)
    for drill in drills:
        results.append(_run_drill(drill, environment))
        _RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    print(_table(results))
    return OK if all(result.is_successful for result in results) else FAILED


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(__doc__)
    parser.epilog = "\n".join(f"  {drill.name:<18} {drill.description}" for drill in DRILLS)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        type=one_of([drill.name for drill in DRILLS]),
        help="which drills; default: all",
    )
    add_confirmation(parser, "only show what would be damaged")
    return parser


def _run_drill(drill: Drill, environment: DrillEnvironment) -> DrillResult:
    print(f"{drill.name}: {drill.description}", flush=True)
    result = run_drill(drill, environment, lambda step: print(f"  {step}", flush=True))
    print(f"  recovered in {result.seconds:.1f} s of {result.bound_seconds:.0f} s", flush=True)
    for problem in result.problems:
        print(f"  PROBLEM {problem}", flush=True)
    return result


def _table(results: Sequence[DrillResult]) -> str:
    lines = [f"{'drill':<20}{'seconds':>9}{'bound':>7}  steps"]
    for each in results:
        steps = ", ".join(f"{step} {seconds:.1f}" for step, seconds in each.steps.items())
        verdict = "ok" if each.is_successful else "FAILED"
        lines.append(f"{each.name:<20}{each.seconds:>9.1f}{each.bound_seconds:>7.0f}  {verdict}: {steps}")
    return "\n".join(lines)


if __name__ == "__main__":
    run(lambda: main(sys.argv[1:]))
