"""Scripts that complete the commands in a shell; made from the parser, so that none is missing."""

import argparse
from collections.abc import Iterable, Mapping

SHELLS = ("bash", "zsh")

_SCRIPT = """\
{prelude}_gamelake() {{
  local words
  case "${{COMP_WORDS[*]:1:COMP_CWORD-1}}" in
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
    """Return the script for a shell of `SHELLS`: `source <(gamelake completion bash)`."""
    found = words(parser)
    # The longest first: after `load set`, words of `load` are wrong.
    cases = "\n".join(f"    {name!r}*) words={' '.join(found[name])!r} ;;" for name in sorted(found, reverse=True))
    commands = " ".join(_choices(parser))
    return _SCRIPT.format(prelude=_FOR_ZSH if shell == "zsh" else "", cases=cases, commands=commands)


def words(parser: argparse.ArgumentParser) -> Mapping[str, list[str]]:
    """Return the commands and their actions, such as `load` and `load set`, each with the words that may follow."""
    found: dict[str, list[str]] = {}
    for name, command in _choices(parser).items():
        found[name] = _words_of(command)
        found |= {f"{name} {action}": each for action, each in words(command).items()}
    return found


def complete_with(argument: argparse.Action, values: Iterable[str]) -> None:
    """Complete an argument with these values; others are not refused by the parser."""
    argument.completions = tuple(values)  # type: ignore[attr-defined] # where the parser keeps it with the argument


def _words_of(command: argparse.ArgumentParser) -> list[str]:
    actions = command._actions  # noqa: SLF001 # argparse has no other way to list them
    options = [option for action in actions for option in action.option_strings if option.startswith("--")]
    values = [value for action in actions for value in (*getattr(action, "completions", ()), *_values_of(action))]
    return [*values, *options]


def _values_of(action: argparse.Action) -> Iterable[str]:
    """The names of actions, or the values to choose from."""
    return map(str, action.choices or ())


def _choices(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    for action in parser._actions:  # noqa: SLF001 # as above
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return action.choices
    return {}
