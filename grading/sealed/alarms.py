"""Two alarms for one piece of work: one counts its processor time, the other one the clock of a busy machine."""

from __future__ import annotations

import signal


def timers() -> tuple:
    """Signal and timer of each; looked up when asked for, since Windows has neither."""
    return (signal.SIGPROF, signal.ITIMER_PROF), (signal.SIGALRM, signal.ITIMER_REAL)


def set_alarms(cpu_s: float, wall_s: float, handler) -> None:
    """Call the handler after so many seconds of CPU, or so many on the clock; signal.SIG_DFL ends the process."""
    for (number, timer), after in zip(timers(), (cpu_s, wall_s)):
        signal.signal(number, handler)
        signal.setitimer(timer, after)


def clear_alarms() -> None:
    """No more alarms."""
    for number, timer in timers():
        signal.setitimer(timer, 0)
        signal.signal(number, signal.SIG_DFL)
