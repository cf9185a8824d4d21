"""The orientation that a camera notes in a JPEG file."""

import struct

# For each orientation of the EXIF standard (CIPA DC-008, tag 0x0112) that is not the usual one:
# whether rows and columns change places, then whether the rows are reversed, and the columns.
TURNS = {
    2: (False, False, True),
    3: (False, True, True),
    4: (False, True, False),
    5: (True, False, False),
    6: (True, False, True),
    7: (True, True, True),
    8: (True, True, False),
}
ORIENTATION = 0x0112  # the tag


def orientation(content):
    """The orientation, 1 to 8, that the bytes of a JPEG file name; 1, the usual one, if they name
    none."""
    at = 2
    try:
        while content[at] == 0xFF and content[at + 1] not in (0xDA, 0xD9):  # up to the image itself
            (length,) = struct.unpack_from('>H', content, at + 2)
            if content[at + 1] == 0xE1 and content[at + 4 : at + 10] == b'Exif\0\0':
                found = _in_directory(content[at + 10 : at + 2 + length])
                return found if found in TURNS else 1
            at += 2 + length
    except (IndexError, struct.error):
        pass
    return 1


def _in_directory(tiff):
    """The orientation in the first directory of a TIFF header with its data; None if there is
    none."""
    order = {b'II': '<', b'MM': '>'}.get(tiff[:2])
    if not order:
        return None
    (start,) = struct.unpack_from(order + 'I', tiff, 4)
    (count,) = struct.unpack_from(order + 'H', tiff, start)
    for entry in range(start + 2, start + 2 + 12 * count, 12):
        tag, _, _, value = struct.unpack_from(order + 'HHIH', tiff, entry)
        if tag == ORIENTATION:
            return value
    return None


def upright(image, turned):
    """Turns an image, [channels, height, width], of this orientation as it is to be seen."""
    swap, reverse_rows, reverse_columns = TURNS.get(turned, (False, False, False))
    image = image.swapaxes(1, 2) if swap else image
    return image[:, :: -1 if reverse_rows else 1, :: -1 if reverse_columns else 1]
