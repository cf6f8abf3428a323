"""Pictures: `picture` draws what moves (SVG), `style` holds the colours and the sheet for matplotlib."""

from .style import COLOUR, use_style

__all__ = ["COLOUR", "use_style"]
