"""Pictures of pages for the documentation: light and dark, small, and not blank."""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageStat

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
SCHEMES = ("light", "dark")
LARGEST = 150_000  # bytes


def brightness(image: Image.Image) -> float:
    """The mean of all pixels, from 0 to 255."""
    return float(ImageStat.Stat(image.convert("L")).mean[0])


def check_picture(image: Image.Image, scheme: str) -> None:
    """It has text on its ground, neither of them alone, and the ground is light or dark as it should be."""
    pixels = image.convert("L").histogram()
    ground = max(pixels) / sum(pixels)
    assert 0.3 < ground < 0.97, "nothing is shown, or the page has no background"
    assert sum(count > 20 for count in pixels) > 20, "text has many shades"
    assert brightness(image) > 215 if scheme == "light" else brightness(image) < 60
