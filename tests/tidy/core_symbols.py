#!/usr/bin/env python3
"""Fails if an archive of the core refers to a clock, thread, socket, file or random function.

Usage: core_symbols.py ARCHIVE...   Run by ctest with the archives of core/.
"""
import re
import subprocess
import sys

# Names as `nm -C` prints them, without parameters.
BANNED = [
    ("clock", r"std::chrono::.*::now|clock_gettime|gettimeofday|time|clock|timespec_get|ftime"),
    ("sleep or timer", r"u?sleep|nanosleep|clock_nanosleep|alarm|setitimer|timer_\w+|timerfd_\w+"),
    ("thread", r"pthread_(create|join|detach|mutex_\w+|cond_\w+|rwlock_\w+)|std::thread::.*|"
               r"std::this_thread::.*|std::condition_variable.*|std::__future_base.*|fork|vfork|"
               r"sched_yield|std::mutex::.*"),
    ("socket", r"socket|socketpair|connect|bind|listen|accept4?|send(to|msg)?|recv(from|msg)?|"
               r"poll|ppoll|select|epoll_\w+|getaddrinfo"),
    ("file", r"open(64|at|at64)?|creat(64)?|fopen(64)?|fdopen|freopen(64)?|read|p?read(64)?|write|"
             r"pwrite(64)?|close|unlink(at)?|rename(at)?|mkdir(at)?|f?stat(64)?|fsync|fdatasync|"
             r"std::basic_(i|o)?fstream.*|std::basic_filebuf.*|std::filesystem::.*"),
    ("output", r"v?f?printf|__v?f?printf_chk|puts|fputs|fwrite|putchar|std::(cout|cerr|clog)|"
               r"std::basic_ostream.*operator<<.*cout.*"),
    ("random number or environment", r"s?rand|rand_r|[dlm]rand48|getrandom|random|"
                                     r"std::random_device::.*|secure_getenv|getenv"),
]
# Member of an archive -> kinds it may use.
EXEMPT = {"check.cc.o": {"output"}}  # a broken invariant says so before it aborts


def breaches(nm_output):
    """Yields (member, kind, symbol) from the text of `nm -A -C --undefined-only`."""
    for line in nm_output.splitlines():
        match = re.match(r"^(?P<file>[^:]+(?::[^:]+)?):\s+[Uvw]\s(?P<symbol>.*)$", line)
        if not match:
            continue
        member = match.group("file").split(":")[-1]
        name = re.sub(r"@.*$", "", match.group("symbol").split("(")[0]).strip()
        for kind, pattern in BANNED:
            if re.fullmatch(pattern, name) and kind not in EXEMPT.get(member, set()):
                yield member, kind, name


def main(archives):
    count = 0
    for archive in archives:
        result = subprocess.run(["nm", "-A", "-C", "--undefined-only", archive], check=True,
                                stdout=subprocess.PIPE, text=True)
        for member, kind, name in breaches(result.stdout):
            print(f"{archive}({member}): {kind} function {name}; the core is pure: pass the value "
                  "in, or hand the deed to a port of the engine")
            count += 1
    print(f"{len(archives)} archives of the core read, {count} breaches")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
