"""How much one submission may use. One table, read on both sides of the sandbox."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of one submission; the defaults are several times what a good answer needs."""

    cpu_s: int = 60  # CPU seconds of one process of the submission
    wall_s: float = 120.0  # from the start to the last answer
    cell_s: float = 30.0  # CPU seconds of one cell; three times that on the clock
    call_s: float = 10.0  # CPU seconds of one call from a check; three times that on the clock
    memory_bytes: int = 3 << 30  # address space of one process
    group_bytes: int = 4 << 30  # memory of all processes of a submission together; at level 4
    processes: int = 64  # processes and threads, beside those of the grader
    file_bytes: int = 32 << 20
    scratch_bytes: int = 64 << 20
    scratch_files: int = 4096
    text_bytes: int = 1 << 20  # text that one cell may leave
    rich_outputs: int = 20  # figures and values that one cell may leave
    notebook_bytes: int = 8 << 20  # a submission, and all outputs together

    def as_dict(self) -> dict:
        """Plain data for the servers and for the record."""
        return asdict(self)
