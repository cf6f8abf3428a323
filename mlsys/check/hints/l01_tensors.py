"""Hints of lesson 1.1, tensors."""

HINTS = {
    "strides-in-bytes": "These strides are in bytes. The task counts in elements, so a row of 4 has stride 4 whatever its type.",
    "slice-step-not-in-stride": "A slice with a step visits every step-th element, so the stride of that axis changes too.",
    "slice-start-not-scaled": "The offset counts elements of the buffer. One index along an axis is as many elements as that axis' stride.",
    "broadcast-keeps-stride": "On an axis that is repeated the index moves and the address stays: think about which stride does that.",
    "permute-inverted": "New axis i is old axis axes[i]. You moved old axis i to place axes[i], which is the inverse permutation.",
    "broadcast-aligned-left": "Shapes are aligned at the right: the last axes face each other, and missing axes are added in front.",
    "broadcast-needs-same-rank": "When one shape is shorter, its missing axes count as length 1, and each facing pair is then compared; an axis of the shorter shape can stretch the longer one.",
    "broadcast-takes-the-larger": "Two different lengths fit only if one of them is 1. Taking the larger of 3 and 4 would read past the end of an axis.",
    "adjoint-not-summed": "One entry of the input was read by several outputs. Its gradient collects all of theirs; you kept one.",
    "adjoint-averaged": "The gradients of all the outputs that read an entry add up. A mean divides by how many there are, and nothing in the forward pass did.",
    "adjoint-drops-the-axis": "A gradient has exactly the shape of its input: an axis of length 1 is summed but stays.",
    "adjoint-only-leading-axes": "Broadcasting repeats in two ways: it adds axes in front, and it stretches axes of length 1. Both have to be summed.",
    "product-without-the-two": "Each of the m*n*k steps is a multiplication and an addition: that is two operations.",
    "traffic-without-the-output": "The result has to be written as well: three matrices cross the bus.",
    "traffic-in-elements": "This counts elements. Bytes are elements times itemsize.",
    "intensity-upside-down": "Arithmetic intensity is FLOPs for each byte, not bytes for each FLOP.",
    "walk-counts-lines-touched": "This counts the distinct lines. With a cache of one line a line that was left is fetched again when the walk comes back to it.",
    "walk-line-in-elements": "line_bytes counts bytes: a 64-byte line holds 16 float32 numbers, not 64.",
    "walk-rounds-down": "The last line may be partly filled. It is fetched all the same.",
    "walk-every-step-a-line": "When a row is shorter than a line, the next entry down the column may lie in the line that you already have.",
}
