"""What authors and lecturers run: `python -m grading --help` lists it."""
