"""`new`: a lesson with all its fixed parts, to be written over part by part.

It has the form that `lint` asks for, except for the number of words.
"""

from __future__ import annotations

import re
from pathlib import Path

from .cells import canonical
from .files import course_root, notebook_text, shown, write_file
from .textform import from_text

SECTIONS = ("first", "second", "third", "fourth", "fifth")

HEAD = """%%%% md title
# {number} {title}

One sentence: what a reader can do after this lesson and not before.

**You will be able to**

- compute …;
- predict …;
- choose …

**You need** [the start page](../00_start_here.ipynb). **Time:** 45 minutes.

%%%% code set-up setup
import numpy as np

from mlsys import check, viz
from mlsys.widgets import StrideExplorer

viz.use_style()
rng = np.random.default_rng(0)

%%%% md first-guess
## Predict

One concrete question with a number for an answer. Write yours down before you read on.

%%%% code first-guess-predict predict
guess = None  # a number

"""

SECTION = """%%%% md {name}-what
## What the {name} section shows

What and why, in 120 words at most.

%%%% code {name}-code
print("the smallest code that shows it")

%%%% md {name}-result
One sentence about what came out.

%%%% md {name}-takeaway
> **Takeaway.** One line with a number in it, such as 1.

"""

WIDGET = """%%%% md explorer-question
## Try it

Predict what the slider does before you move it.

%%%% code explorer
StrideExplorer()

%%%% md explorer-seen
**What you should have seen.** One or two sentences.

%%%% md exercises
## Exercises

"""

EXERCISE = '''%%%% md {name}-task task
**Exercise.** A situation and its data, never the formula as code. Return twice `x`.

%%%% code {name}-answer answer
def {function}(x):
    """Twice x."""
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION

%%%% code {name}-check check 2
check.function({function}, expected=[((1,), 2), ((3,), 6)])
print("Visible checks pass; more run when graded.")
### BEGIN HIDDEN TESTS
check.function({function}, expected=[((x,), x + x) for x in (0, 7, 1000)])
### END HIDDEN TESTS

'''

TAIL = """%%%% md where-the-model-stops
## Where the model stops

What the lesson leaves out, which way that errs, and what to use on real hardware.

%%%% md recap
## Recap

You can now compute …, predict … and choose …

<details><summary>A question?</summary>Its answer.</details>

%%%% md next-lesson
Next: the lesson that builds on this one.
"""


def lesson_text(number: str, title: str) -> str:
    """The text form of a new lesson. number: such as 3.2."""
    sections = "".join(SECTION.format(name=name) for name in SECTIONS)
    names = ("double-one", "double-two")
    exercises = "".join(EXERCISE.format(name=name, function=name.replace("-", "_")) for name in names)
    return HEAD.format(number=number, title=title) + sections + WIDGET + exercises + TAIL


def module_folder(root: Path, module: str) -> Path:
    """The folder of a module: 03 means the one that is there, 03_gpu_architecture may be new."""
    number = module[:2]
    there = sorted(path for path in (root / "source").glob(f"{number}_*") if path.is_dir())
    if re.fullmatch(r"\d\d", module):
        if not there:
            raise ValueError(f"source/ has no module {number}; give a whole name, such as {number}_clusters")
        return there[0]
    if not re.fullmatch(r"\d\d(_[a-z]+)+", module):
        raise ValueError(f"the module {module!r} is not named like 03_gpu_architecture")
    if there and there[0].name != module:
        raise ValueError(f"module {number} is {there[0].name}, not {module}")
    return root / "source" / module


def new_path(root: Path, module: str, name: str) -> Path:
    """Where a new lesson goes. A name without number gets the next one of its module; nothing is there already."""
    if not re.fullmatch(r"(\d\d_)?[a-z]+(_[a-z]+)*", name):
        raise ValueError(f"the lesson {name!r} is not named like warps or 02_warps")
    folder = module_folder(root, module)
    there = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    if not name[:2].isdigit():
        name = f"{max((int(path.name[:2]) for path in there), default=0) + 1:02}_{name}"
    for other in there:
        if other.name[:2] == name[:2] or other.stem[3:] == name[3:]:
            raise ValueError(f"{shown(folder, root)} has {other.name} already; nothing was written")
    return folder / f"{name}.ipynb"


def new_command(module: str, name: str, title: str) -> int:
    """Lay a new lesson and say what follows. Nothing that is there already is touched."""
    root = course_root()
    path = new_path(root, module, name)
    number = f"{int(path.parent.name[:2])}.{int(path.name[:2])}"
    write_file(path, notebook_text(canonical(from_text(lesson_text(number, title)))))
    print(f"{shown(path, root)} is there, and python -m grading lint says what it still needs.")
    print(f"To it belong tests/answers/{path.stem}.py (right and wrong versions) and its hints in mlsys/check/hints/.")
    return 0
