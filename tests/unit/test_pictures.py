"""A command in a terminal becomes a picture of its output, as it prints it."""

import sys
from pathlib import Path
from xml.etree import ElementTree

from tools.pictures.terminal import TerminalFrame, TerminalScreen, animated, record, shortened

SVG = "{http://www.w3.org/2000/svg}"


def test_a_line_that_is_printed_again_replaces_itself_and_colours_are_left_out() -> None:
    screen = TerminalScreen()

    screen.write("10 rows\r20 rows")
    screen.write("\r30 rows\r\n\x1b[32mdone\x1b[0m\n")

    assert screen.lines() == ("30 rows", "done", "")


def test_a_screen_keeps_as_many_lines_and_columns_as_it_has() -> None:
    screen = TerminalScreen(columns=3, rows=2)

    screen.write("abcdef\nb\nc")

    assert screen.lines() == ("b", "c")
    screen.write("defg")
    assert screen.lines()[-1] == "cde"


def test_a_recording_has_the_command_its_output_and_its_exit_code(tmp_path: Path) -> None:
    program = "print('first', flush=True); print('second <b>'); raise SystemExit(3)"

    frames, code = record((sys.executable, "-c", program), "demo", tmp_path)

    assert code == 3
    assert frames[0].lines == ("$ demo", "")
    assert frames[-1].lines == ("$ demo", "first", "second <b>", "")


def test_long_waits_are_cut_and_short_frames_left_out() -> None:
    frames = [
        TerminalFrame(5.0, ("a",)),
        TerminalFrame(5.01, ("b",)),
        TerminalFrame(100.0, ("c",)),
        TerminalFrame(101.0, ("c",)),
        TerminalFrame(101.5, ("d",)),
    ]

    shorter = shortened(frames)

    assert [(round(frame.at, 2), frame.lines) for frame in shorter] == [(0, ("b",)), (0.41, ("c",)), (1.21, ("d",))]


def test_the_picture_is_xml_with_the_text_and_shows_the_last_frame_without_animations() -> None:
    frames = [TerminalFrame(0.0, ("$ demo",)), TerminalFrame(1.0, ("$ demo", "1 < 2"))]

    picture = animated(frames, "a title")

    root = ElementTree.fromstring(picture)  # noqa: S314 # our own
    lines = {f"#{text.get('id')}": text.text for text in root.iter(f"{SVG}text")}
    shown = [[lines[use.attrib["href"]] for use in group.iter(f"{SVG}use")] for group in root.iter(f"{SVG}g")]
    assert shown == [["$ demo"], ["$ demo", "1 < 2"]]
    assert len(lines) == 2
    assert "#f1 { animation: f1 7.00s step-end infinite; visibility: visible }" in picture
    assert "#f0 { animation: f0 7.00s step-end infinite; visibility: hidden }" in picture
