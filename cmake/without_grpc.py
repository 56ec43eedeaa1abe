#!/usr/bin/env python3
"""Prints, separated by ';', those of the given files that do not reach gRPC or protobuf.

A file reaches them if it includes one of their headers, or a project header that does, or a
project header whose own .cc does (its symbols would be missing at link time).
Run from the source folder; used by the build without gRPC (thread sanitizer).
"""
import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
FOREIGN = re.compile(r'^(grpc(pp)?/|google/protobuf/|gpuq/v\d|grpc/)|\.pb\.h$')


def read_includes(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [name for _, name in INCLUDE.findall(file.read())]
    except OSError:
        return []


def main(files):
    includes = {}
    pending = list(files)
    while pending:
        path = pending.pop()
        if path in includes:
            continue
        includes[path] = read_includes(path)
        near = [name for name in includes[path] if os.path.isfile(name)]
        if path.endswith(".h") and os.path.isfile(path[:-2] + ".cc"):
            near.append(path[:-2] + ".cc")
            includes[path] = includes[path] + [path[:-2] + ".cc"]
        pending += near
    reached = {path for path, names in includes.items() if any(FOREIGN.search(n) for n in names)}
    grown = True
    while grown:
        more = {path for path, names in includes.items()
                if path not in reached and any(name in reached for name in names)}
        grown = bool(more)
        reached |= more
    print(";".join(path for path in files if path not in reached))


if __name__ == "__main__":
    main(sys.argv[1:])
