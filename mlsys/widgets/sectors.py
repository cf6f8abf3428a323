"""The sector explorer: from the 32 addresses of one load to the sectors that move.

Stride, offset and size of an element give each lane its address; the picture shows the sectors that hold them and how
much of each is used. Two more layouts read one field of 32 records: an array of structs, and a struct of arrays.
Exact for one load by itself. Left out: caches, which can bring the true traffic down, never up.
Lessons: coalescing and occupancy.
"""

from __future__ import annotations

import numpy as np

from ..gpu.coalescing import LINE, SECTOR, Traffic, coalesce, units_per_request
from ..units import percent, plural
from ..viz.picture import Picture
from ..viz.sectors import draw_bytes, draw_counts, draw_lanes
from .base import Explorer, choice, slider

ARRAY, STRUCTS, FIELDS = "one array: offset + stride × lane", "array of structs: one field", "struct of arrays: one field"
SIZES = [("1 byte", 1), ("2 bytes", 2), ("4 bytes", 4), ("8 bytes", 8), ("16 bytes", 16)]
RECORDS = 1024  # in each array of a struct of arrays
LANES = np.arange(32)


class SectorExplorer(Explorer):
    """One load of a warp: lanes, sectors, bytes asked for and bytes moved."""

    def __init__(self):
        self.access = choice("layout", [ARRAY, STRUCTS, FIELDS])
        self.itemsize = choice("size of an element", SIZES, 4)
        self.stride = slider("stride, or fields", 2, 1, 32)
        self.offset = slider("offset, or field", 0, 0, 31)
        super().__init__([self.access, self.itemsize, self.stride, self.offset])

    def addresses(self, stride=None, offset=None) -> np.ndarray:
        """Byte addresses of the 32 lanes; arrays of strides or offsets give a row each."""
        stride = np.asarray(self.stride.value if stride is None else stride)[..., None]
        offset = np.asarray(self.offset.value if offset is None else offset)[..., None]
        field = np.minimum(offset, stride - 1)
        elements = {
            ARRAY: lambda: offset + stride * LANES,
            STRUCTS: lambda: field + stride * LANES,
            FIELDS: lambda: field * RECORDS + LANES,
        }[self.access.value]()
        return elements * self.itemsize.value

    def model(self) -> Traffic:
        return coalesce(self.addresses()[None], self.itemsize.value)

    def sentence(self) -> str:
        traffic = self.model()
        return f"{finding(traffic)}. They lie in {plural(traffic.lines, 'line')} of {LINE} bytes."

    def draw(self) -> Picture:
        traffic, itemsize, addresses = self.model(), self.itemsize.value, self.addresses()
        why = reason(addresses, itemsize, traffic)
        picture = Picture(736, 512, f"Sectors of one load. {self.sentence()} {why}")
        picture.text(16, 22, finding(traffic), 15, bold=True)
        picture.text(16, 42, why, 12)
        draw_lanes(picture, 78, addresses, itemsize)
        draw_bytes(picture, 16, 250, traffic.bytes_asked, traffic.sectors)
        picture.text(714, 276, f"{traffic.sectors}", 42, "end", bold=True)
        picture.text(714, 294, f"sector{'s' * (traffic.sectors != 1)}", 12, "end")
        strides, offsets = list(range(1, 33)), list(range(self.offset.max + 1))
        fields = self.access.value != ARRAY
        if fields:
            offsets = offsets[: self.stride.value]
        by_stride = units_per_request(self.addresses(stride=np.array(strides)), itemsize).tolist()
        draw_counts(picture, (48, 348, 300, 118), strides, by_stride, itemsize, self.stride.value,
                    "fields of a struct" if fields else "stride, elements", first=True)
        if len(offsets) > 1:
            by_offset = units_per_request(self.addresses(offset=np.array(offsets)), itemsize).tolist()
            draw_counts(picture, (404, 348, 300, 118), offsets, by_offset, itemsize, min(self.offset.value, offsets[-1]),
                        "field that is read" if fields else "offset, elements")
        return picture


def finding(traffic: Traffic) -> str:
    """The title: sectors, bytes, and the share that is used.

    >>> finding(coalesce(LANES[None] * 8)), finding(coalesce(LANES[None] * 4))
    ('8 sectors move 256 bytes for 128 that are used: 50 %', '4 sectors move 128 bytes, and all are used')
    """
    many = f"{plural(traffic.sectors, 'sector')} move{'s' * (traffic.sectors == 1)} {traffic.bytes_moved:,} bytes"
    if traffic.bytes_asked == traffic.bytes_moved:
        return f"{many}, and all are used"
    return f"{many} for {traffic.bytes_asked} that are used: {percent(traffic.efficiency, '.3g')}"


def reason(addresses: np.ndarray, itemsize: int, traffic: Traffic) -> str:
    """Why it is no fewer sectors."""
    step, start = int(addresses[1] - addresses[0]), int(addresses[0]) % SECTOR
    if step == itemsize:
        if start:
            return f"The lanes' {traffic.bytes_asked} bytes begin {start} bytes behind the edge of a sector, so they touch one more."
        return "Lanes side by side, beginning at the edge of a sector: no fewer are possible."
    if step >= SECTOR:
        return f"Lanes lie {step} bytes apart: each has a sector of its own, and more than 32 there cannot be."
    return f"Lanes lie {step} bytes apart and use {itemsize} of them: the sectors in between come along."
