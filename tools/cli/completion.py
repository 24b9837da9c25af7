"""Scripts that complete the commands in a shell; made from the parser, so that none is missing."""

import argparse
from collections.abc import Mapping

SHELLS = ("bash", "zsh")

_SCRIPT = """\
{prelude}_gamelake() {{
  local words
  case "${{COMP_WORDS[1]}}" in
{cases}
    *) words="{commands}" ;;
  esac
  [ "$COMP_CWORD" -gt 1 ] || words="{commands}"
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -F _gamelake gamelake
"""
_FOR_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The script for a shell of `SHELLS`: `source <(gamelake completion bash)`."""
    found = words(parser)
    cases = "\n".join(f'    {name}) words="{" ".join(each)}" ;;' for name, each in found.items() if each)
    return _SCRIPT.format(prelude=_FOR_ZSH if shell == "zsh" else "", cases=cases, commands=" ".join(found))


def words(parser: argparse.ArgumentParser) -> Mapping[str, list[str]]:
    """The commands, each with its options and actions."""
    return {name: _words_of(each) for name, each in _choices(parser).items()}


def _words_of(command: argparse.ArgumentParser) -> list[str]:
    options = [option for action in command._actions for option in action.option_strings if option.startswith("--")]  # noqa: SLF001
    return [*_choices(command), *options]


def _choices(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    for action in parser._actions:  # noqa: SLF001 # argparse has no other way to list them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return action.choices
    return {}
