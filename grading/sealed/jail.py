"""What a process gives up before it runs a student's code: namespaces, limits, system calls, files.

Linux through ctypes, so nothing has to be compiled. Called in freshly forked children only; a step that
fails raises OSError and no student code runs. `doctor` tries each of them with a real probe.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import signal
import struct
import sys

from .limits import Limits

NEW_MOUNT, NEW_NAMES, NEW_IPC, NEW_USER, NEW_PID, NEW_NET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
PR_DEATH_SIGNAL, PR_DUMPABLE, PR_SECCOMP, PR_DROP_BOUND, PR_SUBREAPER, PR_NO_NEW_PRIVS, PR_AMBIENT = 1, 4, 22, 24, 36, 38, 47
NOSUID, NODEV, NOEXEC, READ_ONLY, BIND, RECURSIVE, PRIVATE = 2, 4, 8, 1, 0x1000, 0x4000, 0x40000
MAY_FAIL = 0x00050000  # seccomp's "return this errno"
EPERM, EACCES, ENOSYS = 1, 13, 38

if sys.platform != "win32":  # there grading refuses to start before anything here is called
    import resource

    _libc = ctypes.CDLL(None, use_errno=True)


def _done(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _mount(source: str | None, target: str, kind: str | None, flags: int = 0, data: str | None = None) -> None:
    texts = [text and text.encode() for text in (source, target, kind, data)]
    _done(_libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]), f"mount {target}")


def own_namespaces(limits: Limits) -> None:
    """User, mount, process, IPC, host-name and network namespaces of its own; returns in their process 1.

    The calling process waits for that one, kills it on SIGTERM, and ends with it: when it is gone, all are.
    """
    uid, gid = os.getuid(), os.getgid()
    _done(_libc.unshare(NEW_USER | NEW_MOUNT | NEW_PID | NEW_IPC | NEW_NAMES | NEW_NET), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    inner = os.fork()
    if inner:
        os.closerange(3, 512)
        signal.signal(signal.SIGTERM, lambda *_: os.kill(inner, signal.SIGKILL))
        os.waitpid(inner, 0)
        os._exit(0)
    _libc.prctl(PR_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    _mount(None, "/", None, RECURSIVE | PRIVATE)
    size = f"size={limits.scratch_bytes},nr_inodes={limits.scratch_files},mode=0700"
    for place in ("/scratch", "/tmp", "/dev/shm"):
        if os.path.isdir(place) and not os.path.islink(place):
            _mount("tmpfs", place, "tmpfs", NOSUID | NODEV, size)
    try:
        _mount("proc", "/proc", "proc", NOSUID | NODEV | NOEXEC)
    except OSError:  # a kernel that hides parts of /proc gives no fresh one: then none at all
        _mount("tmpfs", "/proc", "tmpfs", NOSUID | NODEV | NOEXEC | READ_ONLY, "size=4k,nr_inodes=2")
    os.chdir("/scratch")


def guardian() -> None:
    """Orphans of this process become its children, and nobody of the same account can look into it."""
    if hasattr(os, "pidfd_open") or platform.system() == "Linux":
        _libc.prctl(PR_SUBREAPER, 1, 0, 0, 0)
        _libc.prctl(PR_DUMPABLE, 0, 0, 0, 0)


def ordinary_again() -> None:
    """For a child of the guardian: its own /proc files are its own."""
    if platform.system() == "Linux":
        _libc.prctl(PR_DUMPABLE, 1, 0, 0, 0)


def set_limits(limits: Limits, more_processes: int = 0) -> None:
    """The resource limits of one submission, for this process and all that it starts."""
    table = [
        ("RLIMIT_AS", limits.memory_bytes),
        ("RLIMIT_NPROC", limits.processes),
        ("RLIMIT_FSIZE", limits.file_bytes),
        ("RLIMIT_CPU", limits.cpu_s),
        ("RLIMIT_NOFILE", 256),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_MSGQUEUE", 0),
    ]
    for name, value in table:
        if hasattr(resource, name):
            hard = value + {"RLIMIT_CPU": 1, "RLIMIT_NPROC": more_processes}.get(name, 0)
            try:
                resource.setrlimit(getattr(resource, name), (value, hard))
            except (ValueError, OSError):  # it is below that already, or (macOS) cannot be set
                pass
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("800")  # where a control group's memory is used up, this process goes and not the server


def fork_with_room() -> int:
    """os.fork with the places that the process limit keeps for the grader's own forks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))
    try:
        return os.fork()
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))


def drop_privileges() -> None:
    """No capability is left, and no program can give one back."""
    _done(_libc.prctl(PR_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    for capability in range(64):
        _libc.prctl(PR_DROP_BOUND, capability, 0, 0, 0)
    _libc.prctl(PR_AMBIENT, 4, 0, 0, 0)
    _done(_libc.capset(struct.pack("<Ii", 0x20080522, 0), b"\0" * 24), "capset")


# System calls that no answer needs, by machine: numbers of x86-64 and of the generic table (arm64).
REFUSED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268), "kexec_load": (246, 104), "reboot": (169, 142),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "acct": (163, 89),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "swapon": (167, 224), "swapoff": (168, 225),
    "mount_setattr": (442, 442), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "pidfd_getfd": (438, 438), "vhangup": (153, 58),
    "syslog": (103, 116), "quotactl": (179, 60), "settimeofday": (164, 170), "clock_settime": (227, 112),
}  # fmt: skip
SHARED_MEMORY = {"shmget": (29, 194), "shmat": (30, 196), "semget": (64, 190), "msgget": (68, 186)}
MACHINES = {"x86_64": (0, 0xC000003E, 41, 56), "aarch64": (1, 0xC00000B7, 198, 220)}  # column, arch, socket, clone
CLONE3 = 435


def filter_calls(unix_sockets: bool, shared_memory: bool) -> None:
    """A seccomp filter: refuse the calls above, all sockets but local ones (or all), and new user namespaces."""
    if platform.machine() not in MACHINES:
        raise OSError(ENOSYS, f"no system-call table for {platform.machine()}")
    column, arch, socket, clone = MACHINES[platform.machine()]
    refused = [numbers[column] for numbers in REFUSED.values()]
    refused += [] if shared_memory else [numbers[column] for numbers in SHARED_MEMORY.values()]
    load, equal, above, bits, give = 0x20, 0x15, 0x35, 0x45, 0x06
    allow = (give, 0, 0, 0x7FFF0000)
    code = [(load, 0, 0, 4), (equal, 1, 0, arch), (give, 0, 0, 0x80000000), (load, 0, 0, 0)]
    if column == 0:
        code += [(above, 0, 1, 0x40000000), (give, 0, 0, 0x80000000)]  # the x32 numbers
    for number in refused:
        code += [(equal, 0, 1, number), (give, 0, 0, MAY_FAIL | EPERM)]
    code += [(equal, 0, 1, CLONE3), (give, 0, 0, MAY_FAIL | ENOSYS)]  # libc then uses clone
    if unix_sockets:
        code += [(equal, 0, 4, socket), (load, 0, 0, 16), (equal, 1, 0, 1), (give, 0, 0, MAY_FAIL | EACCES), allow]
    else:
        code += [(equal, 0, 1, socket), (give, 0, 0, MAY_FAIL | EACCES)]
    code += [(equal, 0, 4, clone), (load, 0, 0, 16), (bits, 0, 1, NEW_USER), (give, 0, 0, MAY_FAIL | EPERM), allow, allow]
    block = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in code))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]

    program = Program(len(code), ctypes.cast(block, ctypes.c_void_p))
    _done(_libc.prctl(PR_SECCOMP, 2, ctypes.byref(program), 0, 0), "seccomp")


LANDLOCK = {"create": 444, "add": 445, "restrict": 446}
FILE_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}  # by version of the interface
READ = 0b1101  # execute, read a file, read a folder
FILE_ONLY = 0b1000_0000_0000_0111 | 1 << 14  # rights that a plain file can have


def landlock_version() -> int:
    """The version of Landlock that this kernel has; 0 for none."""
    return max(0, _libc.syscall(LANDLOCK["create"], None, 0, 1))


def lock_files(readable: list[str], writable: list[str]) -> None:
    """Landlock: these places and nothing else; no TCP, no signals and no abstract sockets out of this domain."""
    version = landlock_version()
    if not version:
        raise OSError(ENOSYS, "this kernel has no Landlock")
    rights = FILE_RIGHTS[min(version, 5)]
    attributes = struct.pack("<QQQ", rights, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = _done(_libc.syscall(LANDLOCK["create"], attributes, size, 0), "Landlock")
    for places, allowed in ((readable, READ), (writable, rights)):
        for place in places:
            try:
                handle = os.open(place, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue  # what is not there needs no rule
            mine = allowed & rights if os.path.isdir(place) else allowed & rights & FILE_ONLY
            _done(_libc.syscall(LANDLOCK["add"], rules, 1, struct.pack("<Qi", mine, handle), 0), f"Landlock {place}")
            os.close(handle)
    _done(_libc.syscall(LANDLOCK["restrict"], rules, 0), "Landlock")
    os.close(rules)


def make_reachable(places: list[str]) -> None:
    """For root, before it becomes ordinary: let others reach these places where a private folder is in the way.

    In a mount namespace of this process an empty folder covers the private one (such as /root), and only the
    places themselves are put back into it.
    """
    blocked = {place: folder for place in places if (folder := first_private(place))}
    if not blocked:
        return
    _done(_libc.unshare(NEW_MOUNT), "unshare")
    _mount(None, "/", None, RECURSIVE | PRIVATE)
    handles = {place: os.open(place, os.O_PATH) for place in blocked}
    for folder in set(blocked.values()):
        _mount("tmpfs", folder, "tmpfs", NOSUID | NODEV, "size=1m,mode=0755")
    for place, handle in handles.items():
        os.makedirs(place, exist_ok=True)
        _mount(f"/proc/self/fd/{handle}", place, None, BIND | RECURSIVE)
        os.close(handle)


def first_private(place: str) -> str | None:
    """The outermost folder on the way to a place that others may not enter."""
    parts = place.rstrip("/").split("/")
    ways = ["/".join(parts[: n + 1]) or "/" for n in range(len(parts))]
    return next((way for way in ways if not os.stat(way).st_mode & 0o001), None)


def become(account: int) -> None:
    """From root to an ordinary account, for good."""
    os.setgroups([])
    os.setresgid(account, account, account)
    os.setresuid(account, account, account)
