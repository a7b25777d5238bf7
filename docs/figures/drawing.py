"""A small SVG writer: boxes, arrows and text, in a light and a dark palette."""

from html import escape
from pathlib import Path

FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
PALETTES = {
    "light": {
        "text": "#1f2933",
        "muted": "#52606d",
        "line": "#66717d",
        "blue": ("#dbeafe", "#2563eb"),
        "green": ("#dcfce7", "#15803d"),
        "orange": ("#ffedd5", "#c2570c"),
        "purple": ("#ede9fe", "#7c3aed"),
        "grey": ("#f1f5f9", "#8795a5"),
        "plain": ("none", "#8795a5"),
    },
    "dark": {
        "text": "#e5e9ee",
        "muted": "#aab4c0",
        "line": "#9aa5b1",
        "blue": ("#1d3557", "#60a5fa"),
        "green": ("#163b27", "#4ade80"),
        "orange": ("#472a12", "#fb923c"),
        "purple": ("#33265a", "#a78bfa"),
        "grey": ("#2b323c", "#8795a5"),
        "plain": ("none", "#8795a5"),
    },
}


class Drawing:
    """Shapes in pixels from the top left corner, written as two files.

    Args:
        width: width of the drawing, pixels.
        height: height of the drawing, pixels.
        title: a description for readers who cannot see the drawing.
    """

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []

    def box(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        text: str = "",
        colour: str = "grey",
        *,
        size: float = 14,
        dashed: bool = False,
        bold: bool = False,
        radius: float = 6,
    ) -> None:
        """A box with lines of text in its middle; lines after the first are muted."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{radius:g}" '
            f'fill="{{{colour}.0}}" stroke="{{{colour}.1}}" stroke-width="1.4"{dash}/>'
        )
        lines = text.split("\n") if text else []
        step = size + 4
        top = y + h / 2 - step * (len(lines) - 1) / 2
        for number, line in enumerate(lines):
            small = number > 0
            self.text(
                x + w / 2,
                top + number * step,
                line,
                size=size - 1.5 if small else size,
                muted=small,
                bold=bold and not small,
            )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 14,
        anchor: str = "middle",
        muted: bool = False,
        bold: bool = False,
        mono: bool = False,
    ) -> None:
        """One line of text whose middle is at height y."""
        weight = ' font-weight="600"' if bold else ""
        family = " font-family=\"ui-monospace, 'DejaVu Sans Mono', monospace\"" if mono else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y + size * 0.35:g}" font-size="{size:g}" '
            f'text-anchor="{anchor}"{weight}{family} '
            f'fill="{{{"muted" if muted else "text"}}}">{_safe(text)}</text>'
        )

    def arrow(
        self,
        *points: tuple[float, float],
        dashed: bool = False,
        head: bool = True,
        width: float = 1.5,
    ) -> None:
        """A line through points, with a head at its end."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        end = ' marker-end="url(#head)"' if head else ""
        path = " ".join(f"{'L' if i else 'M'} {x:g} {y:g}" for i, (x, y) in enumerate(points))
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{{line}}" stroke-width="{width:g}"{dash}{end}/>'
        )

    def line(self, *points: tuple[float, float], colour: str = "", width: float = 1.5) -> None:
        """A line through points, in the edge of a colour."""
        stroke = f"{{{colour}.1}}" if colour else "{line}"
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="{width:g}"/>'
        )

    def dot(
        self, x: float, y: float, r: float, colour: str = "grey", text: str = "", size: float = 12
    ) -> None:
        """A circle around (x, y)."""
        self.parts.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="{r:g}" fill="{{{colour}.0}}" '
            f'stroke="{{{colour}.1}}" stroke-width="1.4"/>'
        )
        if text:
            self.text(x, y, text, size=size)

    def cell(self, x: float, y: float, side: float, colour: str, strength: float) -> None:
        """A square filled with a share of a colour's edge, 0 to 1."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{side:g}" height="{side:g}" '
            f'fill="{{{colour}.1}}" fill-opacity="{strength:.3f}" '
            'stroke="{line}" stroke-width="0.5"/>'
        )

    def svg(self, theme: str) -> str:
        """The drawing in a theme, "light" or "dark"."""
        palette = PALETTES[theme]
        body = "\n".join(self.parts)
        for name, value in palette.items():
            if isinstance(value, str):
                body = body.replace(f"{{{name}}}", value)
            else:
                body = body.replace(f"{{{name}.0}}", value[0]).replace(f"{{{name}.1}}", value[1])
        head = (
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto-start-reverse">'
            f'<path d="M 0 0 L 8 4 L 0 8 z" fill="{palette["line"]}"/></marker></defs>'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" '
            f'height="{self.height}" viewBox="0 0 {self.width} {self.height}" '
            f'font-family="{FONT}" role="img">\n<title>{escape(self.title)}</title>\n'
            f"{head}\n{body}\n</svg>\n"
        )

    def save(self, folder: Path, name: str) -> None:
        """Write NAME-light.svg and NAME-dark.svg."""
        for theme in PALETTES:
            path = folder / f"{name}-{theme}.svg"
            path.write_text(self.svg(theme), encoding="utf8")


def _safe(text: str) -> str:
    """Text for XML; braces would be taken for names of colours."""
    return escape(text).replace("{", "&#123;").replace("}", "&#125;")
