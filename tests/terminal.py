"""What a terminal shows: as much of its control language as progress bars speak."""

import re

CONTROL = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


class Screen:
    """``ever`` has all that was shown at any time, ``left`` what is on the screen at the end."""

    def __init__(self, written: str) -> None:
        self.written = written
        self.lines, self.row, self.column = [""], 0, 0
        shown = []
        for numbers, order, move, text in CONTROL.findall(written):
            if order == "A":
                self.row = max(0, self.row - int(numbers or 1))
            elif order == "K":
                self.lines[self.row] = ""
            elif move == "\r":
                self.column = 0
            elif move == "\n":
                self.row, self.column = self.row + 1, 0
                self.lines += [""] * (self.row + 1 - len(self.lines))
            elif text:
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + text + line[self.column + len(text) :]
                self.column += len(text)
                shown.append(text)
        self.ever = "".join(shown)

    @property
    def left(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines).strip("\n")
