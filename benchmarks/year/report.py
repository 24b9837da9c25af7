"""The bounds of the year's figures, and its tables and chart in docs/performance.md."""

from collections.abc import Callable
from pathlib import Path

from benchmarks.report import put_between_markers, table
from benchmarks.targets import TargetVerdict
from benchmarks.year.figures import GrowthBound, TaskRunFigures, TenthFigures, YearFigures

_MIB = 2**20
_TASKS = ("start", "compact_daily", "vacuum", "clean_logs", "verify", "measure_tables")
_WITH_FILES = True
# All others of these list no data.
_LISTS_FILES = ("vacuum", "clean_logs")


def _of(task: str, figure: Callable[[TaskRunFigures], float]) -> Callable[[TenthFigures], float | None]:
    return lambda tenth: figure(tenth.tasks[task]) if task in tenth.tasks else None


def _stored(kind: str) -> Callable[[TenthFigures], float | None]:
    return lambda tenth: tenth.kinds[kind].objects


# Times are CPU times: other processes of the machine change them less.
BOUNDS = (
    GrowthBound("batch: CPU ms", lambda tenth: tenth.cpu_ms, 20.0),
    GrowthBound("batch: objects listed", lambda tenth: tenth.listed, 2.0),
    GrowthBound("driver: MiB", lambda tenth: tenth.driver_mib, 10.0),
    # Each reads the live files of all tables.
    *(GrowthBound(f"{task}: CPU s", _of(task, lambda runs: runs.cpu_seconds), 10.0, _WITH_FILES) for task in _TASKS),
    *(GrowthBound(f"{task}: MiB", _of(task, lambda runs: runs.grown_mib), 25.0) for task in _TASKS),
    *(
        GrowthBound(f"{task}: objects listed", _of(task, lambda runs: runs.listed), 10.0, task in _LISTS_FILES)
        for task in _TASKS
    ),
    *(GrowthBound(f"{kind}: objects", _stored(kind), 10.0) for kind in ("log entries", "manifests", "other")),
    GrowthBound("compacted history: objects", _stored("compacted history"), 0.0),
    GrowthBound("compacted history: bytes", lambda tenth: tenth.kinds["compacted history"].bytes, 10.0, _WITH_FILES),
)


def write_report(figures: YearFigures, docs: Path) -> None:
    """Write the tables between the document's markers, and draw the chart.

    Raises:
        MarkersMissingError: the document has no markers.
    """
    draw(figures, docs / "year.svg")
    put_between_markers(
        docs / "performance.md", "measured of a year", [_circumstances(figures), _by_tenths(figures), _bounds(figures)]
    )


def _circumstances(figures: YearFigures) -> str:
    return (
        f"Measured on {figures.measured_at[:10]} at commit `{figures.commit}`, on {figures.cores} cores "
        f"({figures.cpu_model}), tables on the local disk: {figures.batches:,} batches to {figures.tables} tables, "
        f"{figures.batches * figures.tables:,} commits, in {figures.days:.0f} simulated days with a retention of "
        f"{figures.retention_days:g} days, in {figures.seconds / 60:.0f} minutes."
    )


def _by_tenths(figures: YearFigures) -> str:
    tenths = figures.tenths
    rows: list[list[str]] = [
        ["decision of a batch, ms", *(f"{each.decide_ms:.0f}" for each in tenths)],
        [f"its {figures.tables} commits, ms", *(f"{each.commit_ms:.0f}" for each in tenths)],
        ["both, CPU ms", *(f"{each.cpu_ms:.0f}" for each in tenths)],
        ["objects listed for a batch", *(f"{each.listed:.0f}" for each in tenths)],
        ["memory of the driver, MiB", *(f"{each.driver_mib:.0f}" for each in tenths)],
    ]
    for task in _TASKS:
        runs = [each.tasks.get(task) for each in tenths]
        rows += [
            [f"`{task}`: s", *(f"{each.seconds:.2f}" if each else "" for each in runs)],
            [f"`{task}`: CPU s", *(f"{each.cpu_seconds:.2f}" if each else "" for each in runs)],
            [f"`{task}`: memory, MiB", *(f"{each.grown_mib:.0f}" if each else "" for each in runs)],
            [f"`{task}`: objects listed", *(f"{each.listed:,.0f}" if each else "" for each in runs)],
        ]
    rows.append(["live files of past days", *(f"{each.live_files:,}" for each in tenths)])
    for kind in tenths[0].kinds:
        stored = [each.kinds[kind] for each in tenths]
        rows.append([f"{kind}: objects, MiB", *(f"{each.objects:,}, {each.bytes / _MIB:.1f}" for each in stored)])
    return table(["figure", *(str(number) for number in range(1, len(tenths) + 1))], rows)


def _bounds(figures: YearFigures) -> str:
    rows = [
        [
            each.figure,
            f"{each.allowed(figures.rises):.0f} %{', as live files' if each.with_live_files else ''}",
            f"{figures.rises[each.figure]:.0f} %",
            TargetVerdict.REACHED if each.is_kept(figures.rises) else TargetVerdict.FALLS_SHORT,
        ]
        for each in BOUNDS
        if each.figure in figures.rises
    ]
    return table(["figure", "may rise by", "rise from the third tenth to the last", "verdict"], rows)


def draw(figures: YearFigures, file: Path) -> None:
    """Write the chart as SVG: each figure as a multiple of its third tenth."""
    import matplotlib as mpl  # noqa: PLC0415 # half a second, and only a whole run draws

    mpl.use("svg")
    # The same figures give the same file.
    mpl.rcParams["svg.hashsalt"] = "gamelake"
    from matplotlib import pyplot  # noqa: PLC0415 # after the line above

    figure, axes = pyplot.subplots(figsize=(7.6, 4.2), layout="constrained")
    lines: dict[str, list[float | None]] = {
        "decision and commits of a batch": [each.cpu_ms for each in figures.tenths],
        "memory of the driver": [each.driver_mib for each in figures.tenths],
        **{task: [each(tenth) for tenth in figures.tenths] for task, each in _cpu_of_tasks().items()},
        "live files of past days": [float(each.live_files) for each in figures.tenths],
    }
    for name, values in lines.items():
        there = [(number, value) for number, value in enumerate(values, start=1) if value is not None]
        base = next((value for number, value in there if number >= _FIRST_STEADY), 0.0)
        if base:
            axes.plot([number for number, _ in there], [value / base for _, value in there], "o-", label=name)
    axes.set(xlabel="tenth of the year", ylabel="times the third tenth", ylim=(0, None))
    axes.set_title(f"{figures.batches * figures.tables:,} commits to {figures.tables} tables", loc="left")
    axes.grid(visible=True, which="major", color="#d1d9e0")
    axes.legend(frameon=False)
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


_FIRST_STEADY = 3


def _cpu_of_tasks() -> dict[str, Callable[[TenthFigures], float | None]]:
    return {task: _of(task, lambda runs: runs.cpu_seconds) for task in _TASKS}
