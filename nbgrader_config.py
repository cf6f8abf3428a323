"""nbgrader's settings for this course. Each line that differs from nbgrader's default says why."""

import os
import sys
import warnings

c = get_config()  # noqa: F821  (nbgrader defines it)
here = os.path.dirname(os.path.abspath(__file__))

# One name for the course; without it an exchange refuses to work and PostgreSQL breaks a foreign key.
c.CourseDirectory.course_id = "mlsys"
# The course's folder is the one with this file, from wherever nbgrader or JupyterLab was started.
c.CourseDirectory.root = here
# Written in source/; all that a course run makes lies under grading/. What nbgrader prints for release is byte for byte
# what stands in notebooks/ and assignments/, but it deletes before it prints, and there somebody may have answered.
c.CourseDirectory.release_directory = "grading/release"
c.CourseDirectory.submitted_directory = "grading/submitted"
c.CourseDirectory.autograded_directory = "grading/autograded"
c.CourseDirectory.feedback_directory = "grading/feedback"
c.CourseDirectory.solution_directory = "grading/solution"
c.CourseDirectory.source_with_tests_directory = "grading/source_with_tests"
c.CourseDirectory.db_url = "sqlite:///" + os.path.join(here, "grading", "gradebook.db")
# A student who has the course already has every problem set: submit takes it from where it lies.
c.Exchange.assignment_dir = os.path.join(here, "assignments")
# JupyterLab's Assignment List goes into that folder and looks for these settings again: let it find them.
places = os.environ.get("JUPYTER_CONFIG_PATH", "").split(os.pathsep)
if here not in places:
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join([here, *filter(None, places)])
# The exchange is a folder of the machine, so the machine names it.
if "MLSYS_EXCHANGE" in os.environ:
    c.Exchange.root = os.environ["MLSYS_EXCHANGE"]

# What a student finds in place of a solution; the text stub marks an essay that was not begun.
c.ClearSolutions.code_stub = {"python": 'raise NotImplementedError("Replace this line with your answer.")'}
c.ClearSolutions.text_stub = "*Replace this line with your answer.*"

# Answers run in a sandbox and checks in another process (grading/sealed/README.md); the exporter and the first
# step also rebuild what a submission has lost. MLSYS_GRADING=process asks for it without a sandbox, =stock for
# nbgrader's own way: students' code and tests in one kernel that runs as you.
how = os.environ.get("MLSYS_GRADING", "sealed")
if how != "stock":
    sealed = "grading.sealed.preprocessors."
    c.SealedExecute.level = "1" if how == "process" else "auto"
    c.Autograde.exporter_class = sealed + "SubmissionExporter"
    c.Autograde.sanitize_preprocessors = [sealed + "Rebuild"]
    c.Autograde.autograde_preprocessors = [sealed + "SealedExecute", sealed + "SaveSealedGrades"]
    c.Autograde.autograde_preprocessors += [f"nbgrader.preprocessors.{s}" for s in ("AssignLatePenalties", "CheckCellMetadata")]
    # nbgrader's own page would show hidden tests.
    c.GenerateFeedback.exporter_class = "grading.records.exporter.FeedbackExporter"
    c.GenerateFeedback.preprocessors = []
else:
    steps = ("ClearOutput", "DeduplicateIds", "OverwriteKernelspec", "OverwriteCells", "CheckCellMetadata")
    c.Autograde.sanitize_preprocessors = [f"nbgrader.preprocessors.{step}" for step in steps]
    c.Autograde.sanitize_preprocessors.insert(3, "grading.missing.PutBackCells")

# Reference answers need at most 10 s; a slow machine gets six times that.
c.Execute.timeout = 60
# A busy machine may be late with an output; only a minute of silence is a fault.
c.Execute.iopub_timeout = 60
# Graceful shutdown polls and costs 0.2 to 0.4 s a submission.
c.Execute.shutdown_kernel = "immediate"

# ipykernel 7 warns for each kernel that it talks over TCP; here both ends are on this machine.
c.Execute.extra_arguments = ["--IPKernelApp.log_level=40"]
# SQLAlchemy 2 warns about nbgrader's relations once per submission.
warnings.filterwarnings("ignore", module=r"sqlalchemy|nbgrader\.api")

# Formgrader shows text cells with whatever script a student wrote into one. Cleaned, they show the same and run nothing.
c.HTMLExporter.filters = {"markdown2html": "grading.records.feedback.formatted"}

# A widget is blank in a feedback page; the picture that it leaves beside itself is not.
c.DataTypeFilter.display_data_priority = [
    "image/png", "image/svg+xml", "image/jpeg", "text/html", "text/markdown", "text/latex", "text/plain"]

# Grading runs on few cores, often several at once: one thread each. Kernels inherit it.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(threads, "1")
# nbgrader makes its first gradebook with the program `alembic`, and finds it only on PATH.
programs = os.path.dirname(sys.executable)
if programs not in os.environ.get("PATH", "").split(os.pathsep):
    os.environ["PATH"] = programs + os.pathsep + os.environ.get("PATH", "")
