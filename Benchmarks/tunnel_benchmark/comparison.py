"""What the rounds of a comparison come to: medians, ratios, and whether each bar holds."""

import statistics
from dataclasses import dataclass
from typing import Optional

from .measurement import SMALL_PACKET_LENGTH, Figures

BARE_LINK = "bare link"


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    figure: str
    title: str
    unit: str
    digits: int
    # What has to be at least (or at most) this.
    bar: Optional[float] = None
    is_upper_bound: bool = False
    # What is held against the bar: the ratio to the first peer, the ratio to the bare link, the ratio to the peer of this name, or
    # the value itself.
    judged: str = "peer"

    def bar_text(self) -> str:
        """The bar in few words."""
        if self.bar is None:
            return ""
        unit = {"peer": "x", "bare link": "x bare", "value": f" {self.unit}"}.get(self.judged, f"x {self.judged}")
        return f"{'≤' if self.is_upper_bound else '≥'} {self.bar:g}{unit}"


ROWS = [
    *(Row(f"{streams}_{direction}_gigabits_per_second", f"TCP, {streams.replace('_', ' ')}, {direction}", "Gbit/s", 3, 9)
      for streams in ("one_stream", "four_streams") for direction in ("forward", "reverse")),
    *(row for streams in ("one_stream", "four_streams") for row in (
        Row(f"{streams}_processor_seconds_per_gigabyte", f"CPU, {streams.replace('_', ' ')}, all counted", "s/GB", 2,
            0.14, True),
        Row(f"{streams}_daemon_seconds_per_gigabyte", "    of that the daemons' own", "s/GB", 2))),
    Row("ping_p50_milliseconds_idle", "ping p50, idle", "ms", 2),
    Row("ping_p99_milliseconds_idle", "ping p99, idle", "ms", 2),
    Row("ping_p50_milliseconds_four_streams", "ping p50, four streams", "ms", 2, 1, True),
    Row("ping_p99_milliseconds_four_streams", "ping p99, four streams", "ms", 2),
    Row("small_packets_per_second", f"UDP, {SMALL_PACKET_LENGTH} bytes, received", "1/s", 0, 0.5, False, "bare link"),
    Row("resident_mebibytes", "VmRSS after the load", "MiB", 1, 15, True, "value"),
]


class Comparison:
    """Collects figures by round and program."""

    def __init__(self, subject: str, peers: "list[str]", rows: "list[Row]" = ROWS,
                 bases: "tuple[str, ...]" = (BARE_LINK,)):
        """`subject` is the program that the bars are for; ratios are to the first of `peers`. `bases` are what was measured
        without any program."""
        self.subject, self.peers, self.rows, self.bases = subject, peers, rows, bases
        self.rounds: "list[dict[str, Figures]]" = []

    def median(self, program: str, figure: str) -> Optional[float]:
        """The median over the rounds; none when nobody measured it."""
        values = [round_[program][figure] for round_ in self.rounds if figure in round_.get(program, {})]
        return statistics.median(values) if values else None

    def ratio(self, figure: str, base: str) -> Optional[float]:
        """The median of each round's ratio: what slows a whole round down does not move it."""
        values = [
            round_[self.subject][figure] / round_[base][figure] for round_ in self.rounds
            if round_.get(base, {}).get(figure) and figure in round_.get(self.subject, {})]
        return statistics.median(values) if values else None

    def peer_ratio(self, figure: str) -> Optional[float]:
        """The ratio to the first peer; none without one."""
        return self.ratio(figure, self.peers[0]) if self.peers else None

    def held_against_bar(self, row: Row) -> Optional[float]:
        """What of the row its bar is for."""
        if row.judged == "value":
            return self.median(self.subject, row.figure)
        return self.peer_ratio(row.figure) if row.judged == "peer" else self.ratio(row.figure, row.judged)

    def holds(self, row: Row) -> Optional[bool]:
        """Whether the bar holds; none when the row has none or what it needs was not measured."""
        value = self.held_against_bar(row)
        if row.bar is None or value is None:
            return None
        return value <= row.bar if row.is_upper_bound else value >= row.bar

    def time_of_others(self) -> float:
        """The processor seconds that processes which have nothing to do with the run took from the transfers."""
        return sum(
            value for round_ in self.rounds for figures in round_.values() for figure, value in figures.items()
            if figure.endswith("processor_seconds_of_others"))

    def table(self) -> str:
        """Everything for people."""
        programs = [*self.bases, *self.peers, self.subject]
        lines = [["", "", *programs, "ratio" if self.peers else "", "bar", ""]]
        for row in self.rows:
            values = [self.median(program, row.figure) for program in programs]
            ratio, holds = self.peer_ratio(row.figure), self.holds(row)
            held = None if row.judged in ("peer", "value") or row.bar is None else self.held_against_bar(row)
            lines.append([
                row.title, row.unit, *("" if value is None else f"{value:,.{row.digits}f}" for value in values),
                "" if ratio is None else f"{ratio:.2f}",
                row.bar_text() + ("" if held is None else f" (is {held:.2f})"),
                "" if holds is None else "holds" if holds else "MISSED"])
        widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
        is_left = [True, True, *[False] * (len(programs) + 1), True, True]
        return "\n".join(
            "  ".join(cell.ljust(width) if left else cell.rjust(width)
                      for cell, width, left in zip(line, widths, is_left)).rstrip()
            for line in lines)

    def json(self) -> dict:
        """Everything for programs."""
        programs = [*self.bases, *self.peers, self.subject]
        figures = [row.figure for row in self.rows]
        medians = {
            program: {figure: self.median(program, figure) for figure in figures
                      if self.median(program, figure) is not None}
            for program in programs}
        bars = [
            {"figure": row.figure, "bar": row.bar, "bound": "upper" if row.is_upper_bound else "lower",
             "judged": row.judged, "value": self.held_against_bar(row), "holds": self.holds(row)}
            for row in self.rows if row.bar is not None]
        ratios = {figure: self.peer_ratio(figure) for figure in figures if self.peer_ratio(figure) is not None}
        return {
            "subject": self.subject, "peers": self.peers, "medians": medians, "ratios": ratios, "bars": bars,
            "processor_seconds_of_others": self.time_of_others(), "rounds": self.rounds}
