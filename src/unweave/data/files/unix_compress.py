"""Files of the Unix tool ``compress`` (.Z): Lempel-Ziv-Welch with codes that grow from 9 to 16 bits."""

from __future__ import annotations

from unweave.errors import DataError

_MAGIC = b"\x1f\x9d"
_CLEAR = 256
_FIRST_WIDTH = 9


def decompress(data: bytes, name: str) -> bytes:
    """Decompress a .Z file.

    Parameters
    ----------
    data
        the content of the file.
    name
        of the file in errors.

    Returns
    -------
    bytes
        what was compressed.

    Examples
    --------
    >>> decompress(bytes.fromhex("1f9d9061c40404"), "letters.Z")
    b'abab'
    """
    if len(data) < 3 or data[:2] != _MAGIC or not _FIRST_WIDTH <= data[2] & 31 <= 16:
        raise DataError(f"{name}: not a .Z file of the tool compress")
    last_width, has_clear = data[2] & 31, bool(data[2] & 128)
    start = [bytes([i]) for i in range(256)] + ([b""] if has_clear else [])
    table, width, previous, out = list(start), _FIRST_WIDTH, b"", []
    position = group = 24  # in bits; codes of one width come in groups of eight
    while position + width <= 8 * len(data):
        byte = position >> 3
        code = int.from_bytes(data[byte : byte + 4], "little") >> (position & 7) & ((1 << width) - 1)
        position += width
        if has_clear and code == _CLEAR:
            position = group = _next_group(position, group, width)
            table, width, previous = list(start), _FIRST_WIDTH, b""
            continue
        if code > len(table) or (code == len(table) and not previous):
            raise DataError(f"{name}: damaged at byte {byte:,}")
        # A code that is not in the table yet can only be the string that is about to enter it.
        entry = table[code] if code < len(table) else previous + previous[:1]
        out.append(entry)
        if previous and len(table) < 1 << last_width:
            table.append(previous + entry[:1])
        previous = entry
        if len(table) == 1 << width and width < last_width:
            position = group = _next_group(position, group, width)
            width += 1
    return b"".join(out)


def _next_group(position: int, group: int, width: int) -> int:
    """The bit at which the next group of eight codes starts."""
    return position + -(position - group) % (8 * width)
