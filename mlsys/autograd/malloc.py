"""Tell glibc to keep freed memory instead of handing it back to the kernel.

A training step frees its activations and asks for the same sizes again in the next step.
By default glibc returns large blocks to the kernel as soon as they are free, so that every
step begins with page faults. They took between a fifth and half of a small GPT's step on two
machines. Two calls at import end that. The price: the process stays as large as it ever was.
On other C libraries (macOS, Windows, musl) nothing happens, and steps are only slower.
Lessons: backpropagation.
"""

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # names and numbers of glibc's malloc.h
NEVER = 2**31 - 1  # bytes of free memory at the end of the heap before it shrinks
LARGE = 2**30  # bytes from which a block gets pages of its own, returned when freed
LARGE_OLD = 2**25  # the most that older glibc accepts


def keep_freed_pages() -> bool:
    """Whether the C library took both settings."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # not glibc; Windows has no CDLL(None)
        return False
    large = mallopt(M_MMAP_THRESHOLD, LARGE) or mallopt(M_MMAP_THRESHOLD, LARGE_OLD)
    return bool(large and mallopt(M_TRIM_THRESHOLD, NEVER))
