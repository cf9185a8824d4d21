"""A picture to draw on."""

import numpy as np

from cifar10.report import lettering

DARK, GRAY, LIGHT, WHITE = (33, 37, 41), (108, 117, 125), (222, 226, 230), (255, 255, 255)
TITLE, TEXT, SMALL = 17, 13, 12  # sizes of text, in pixels
MARGIN = 18  # pixels around what is drawn
# where a text starts: so much of its width before the given place
_STARTS = {'left': 0, 'center': 0.5, 'right': 1}


class Canvas:
    """A white picture; places are pixels from the top left, and what is outside is cut off."""

    def __init__(self, width, height):
        """`pixels` is the picture: uint8 [height, width, 3]."""
        self.pixels = np.full([height, width, 3], 255, np.uint8)

    def fill(self, box, color):
        """Fills a rectangle (x, y, width, height), whose ends are rounded to whole pixels, with
        (red, green, blue) of 0 to 255."""
        x, y, width, height = box
        left, top, right, bottom = [
            max(0, int(round(end))) for end in (x, y, x + width, y + height)
        ]
        self.pixels[top:bottom, left:right] = color

    def paste(self, x, y, image):
        """Copies an image, uint8 [height, width, 3]."""
        self.pixels[y : y + image.shape[0], x : x + image.shape[1]] = image

    def text(self, place, text, size, color=DARK, align='left'):
        """Draws text around the row y of `place` (x, y), from x on (left), up to x (right) or on
        both sides of it (center)."""
        ink = lettering.ink(text, size)
        self._blend(
            place[0] - _STARTS[align] * ink.shape[1], place[1] - lettering.middle(size), ink, color
        )

    def text_up(self, place, text, size, color=DARK, align='left'):
        """The same, turned to read upwards: around the column x, from y on upwards (left), up to it
        (right) or on both sides."""
        ink = np.rot90(lettering.ink(text, size))
        self._blend(
            place[0] - lettering.middle(size),
            place[1] - (1 - _STARTS[align]) * ink.shape[0],
            ink,
            color,
        )

    def diagonal(self, box, color):
        """Draws a dashed line from the bottom left of a rectangle (x, y, width, height) to its top
        right."""
        x, y, width, height = box
        down, across = np.mgrid[0.5:height, 0.5:width]
        distance = np.abs(across * height - (height - down) * width) / np.hypot(width, height)
        is_dash = (across + height - down) % 16 < 10
        self._blend(x, y, (255 * np.clip(1.2 - distance, 0, 1) * is_dash).astype(np.uint8), color)

    def _blend(self, x, y, ink, color):
        """Puts color on the picture where there is ink."""
        x, y = int(round(x)), int(round(y))
        ink = ink[max(0, -y) :, max(0, -x) :]
        behind = self.pixels[max(0, y) :, max(0, x) :][: ink.shape[0], : ink.shape[1]]
        share = ink[: behind.shape[0], : behind.shape[1], np.newaxis] / 255
        behind[:] = np.round(behind + share * (np.array(color, np.float64) - behind)).astype(
            np.uint8
        )
