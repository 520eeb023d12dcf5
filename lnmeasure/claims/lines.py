"""Where in a file of claims a key stands, so that a message can name the line."""

import re
from dataclasses import dataclass
from typing import NoReturn

_CLAIM, _PART = r"\[\[\s*claim\s*\]\]", r"\[\[\s*claim\s*\.\s*part\s*\]\]"


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Some lines of a file, the first and the last counted from 1."""

    text: str
    file: str
    first: int = 1
    last: int | None = None

    def entry(self, number: int) -> "Lines":
        """The lines of the claim with a number from 0."""
        return self._section(_CLAIM, number)

    def part(self, number: int) -> "Lines":
        """The lines of the part with a number from 0, of a claim."""
        return self._section(_PART, number)

    def line_of(self, key: str | None) -> int:
        """The line in which a key is set, or the first one."""
        found = [n for n, line in self._numbered() if key and re.match(rf"\s*{re.escape(key)}\s*[=.]", line)]
        return found[0] if found else self.first

    def refuse(self, what: str, way_out: str, key: str | None = None) -> NoReturn:
        """ValueError that names file, line, value, rule and way out."""
        raise ValueError(f"{self.file}, line {self.line_of(key)}: {what}: {way_out}.")

    def _numbered(self) -> list[tuple[int, str]]:
        lines = self.text.splitlines()
        return [*enumerate(lines, 1)][self.first - 1 : self.last]

    def _section(self, header: str, number: int) -> "Lines":
        """From one header to the next; to the end of these lines where there is none."""
        starts = [n for n, line in self._numbered() if re.match(rf"\s*{header}", line)]
        if number >= len(starts):  # written inline, as claim = [{...}]
            return self
        last = starts[number + 1] - 1 if number + 1 < len(starts) else self.last
        return Lines(text=self.text, file=self.file, first=starts[number], last=last)
