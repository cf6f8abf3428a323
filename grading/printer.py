"""What students get, made in process: the same bytes that `nbgrader generate_assignment` writes.

It is nbgrader's own chain with the course's own settings; only the step that stores cells in
a gradebook is left out, so that printing needs none and starts nbgrader once for all files.
"""

from __future__ import annotations

import logging
from pathlib import Path


class Printer:
    """nbgrader's exporter, set up once and used for many notebooks."""

    def __init__(self, root: Path):
        from nbgrader.converters import GenerateAssignment
        from nbgrader.coursedir import CourseDirectory
        from nbgrader.preprocessors import SaveCells
        from traitlets.config import PyFileConfigLoader

        config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
        folder = CourseDirectory(config=config, root=str(root))
        converter = GenerateAssignment(coursedir=folder, config=config)
        converter.log = logging.getLogger("grading.printer")
        converter.log.addHandler(logging.NullHandler())
        converter.log.propagate = False
        self.exporter = converter.exporter_class(parent=converter, config=converter.config)
        for step in converter.preprocessors:
            if step is not SaveCells:
                self.exporter.register_preprocessor(step)

    def print(self, source: Path) -> str:
        """The student edition of a notebook. Raises ValueError where nbgrader refuses it."""
        try:
            return self.exporter.from_filename(str(source), resources={})[0]
        except Exception as error:
            raise ValueError(f"nbgrader does not print it: {error}") from error
