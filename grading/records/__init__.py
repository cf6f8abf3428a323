"""Records: what is collected, graded, written to the gradebook and told to students, and kept through any crash."""
