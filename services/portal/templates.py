"""The templates of the portal's pages: text in them is escaped, and a missing value is an error, not an empty place."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from services.portal import charts, display

_FOLDER = Path(__file__).parent / "templates"
ASSETS = Path(__file__).parent / "assets"


@dataclass(frozen=True, slots=True)
class NavigationLink:
    """A link of the navigation that every page has."""

    address: str
    title: str


class PortalTemplates:
    """Renders templates with the portal's navigation.

    Args:
        navigation: the pages that there are.
    """

    def __init__(self, navigation: Sequence[NavigationLink] = ()) -> None:
        self._navigation = tuple(navigation)

    def page(self, template: str, current: str = "", **context: object) -> str:
        """Render a whole page; `current` is its address, which the navigation marks."""
        return self.part(template, current=current, navigation=self._navigation, **context)

    @staticmethod
    def part(template: str, **context: object) -> str:
        """Render a part of a page."""
        return environment().get_template(template).render(context)


@cache
def environment(*more: Path) -> Environment:
    """Return the environment of the portal's templates, and of those in more folders, which may use the portal's."""
    made = Environment(
        loader=FileSystemLoader([_FOLDER, *more]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Containers get new files by a new image.
        auto_reload=False,
    )
    made.globals |= {"sparkline": charts.sparkline, "unknown": display.UNKNOWN}
    made.filters |= {
        "duration": display.duration,
        "money": display.money,
        "number": display.number,
        "percent": display.percent,
        "short_money": display.short_money,
    }
    return made
