"""The command line, `gamelake` or `python -m gamelake`: runs `tools.cli` of a checkout, which operates its stack."""

import runpy
import sys
from pathlib import Path

_PROGRAM = Path("tools/cli/__main__.py")
_NO_CHECKOUT = 2


def main() -> int:
    """Run the command line of the checkout that this library is in, or else the one that the current folder is in."""
    places = (Path(__file__).resolve().parents[1], Path.cwd(), *Path.cwd().parents)
    checkout = next((place for place in places if (place / _PROGRAM).is_file()), None)
    if checkout is None:
        sys.stderr.write(
            "gamelake: there is no checkout of Gamelake here; go to the folder that you have cloned it to.\n"
        )
        return _NO_CHECKOUT
    # The library never imports a tool; the programs of a checkout are not installed with it.
    sys.path.insert(0, str(checkout))
    runpy.run_module("tools.cli", run_name="__main__", alter_sys=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
