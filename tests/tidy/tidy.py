#!/usr/bin/env python3
"""Checks the tree against the house rules in rules.py. Prints `file:line: what; fix` for each breach.

Usage: tidy.py [--root FOLDER]. Exit status 1 if anything was found.
"""
import argparse
import ast
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cpp
import rules

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def inside(path, folders):
    return any(path == f or path.startswith(f + "/") for f in folders)


def longest(path, table):
    """The key of `table` that is the deepest folder around `path`, or None."""
    keys = [key for key in table if inside(path, [key])]
    return max(keys, key=len) if keys else None


class Source:
    """One file: its path from the root, text, code without comments, comments and literals."""

    def __init__(self, root, path):
        self.path = path
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            self.text = file.read()
        self.is_cpp = path.endswith((".h", ".cc"))
        self.code, self.remarks = cpp.split(self.text) if self.is_cpp else (self.text, self.text)

    def line(self, position):
        return cpp.line_of(self.text, position)


def check_includes(src):
    if not src.is_cpp:
        return
    folder = os.path.dirname(src.path)
    key = longest(src.path, rules.INCLUDES)
    is_main = os.path.basename(src.path) in ("main.cc", "shim_main.cc")
    for match in INCLUDE.finditer(src.text):
        name, line = match.group(2), src.line(match.start())
        if is_project_header(name):
            if is_main or key is None or inside(name, [key] + rules.INCLUDES[key]):
                continue
            yield line, (f'{folder} may not include "{name}"; it may include '
                         f'{", ".join(rules.INCLUDES[key]) or "nothing but itself"}: move the code '
                         "to a higher layer or declare an interface in a lower one")
        elif match.group(1) == '"':
            yield line, f'"{name}": write project headers from the repository root, others in <>'
        else:
            yield from check_external(src.path, line, name)


def is_project_header(name):
    return inside(name, ["core", "common", "server", "agent", "client", "tests", "gpuq/v1",
                         "grpc/health"])


def check_external(path, line, name):
    lib = longest(name, rules.EXTERNAL)
    if lib and not inside(path, rules.EXTERNAL[lib]):
        yield line, (f"<{name}> belongs to {', '.join(rules.EXTERNAL[lib])}: call through one of "
                     "them, or take the result as an argument")
    costly = longest(name, {key: 0 for key in rules.NOT_IN_HEADERS})
    if costly and path.endswith(".h"):
        if not inside(path, rules.NOT_IN_HEADERS_EXEMPT.get(costly, [])):
            yield line, f"<{name}> is costly to compile: include it in one .cc behind a plain header"


def check_calls(src):
    if not src.is_cpp:
        return
    for what, pattern, allowed, fix in rules.CALLS:
        if inside(src.path, allowed):
            continue
        for match in re.finditer(pattern, src.code):
            yield src.line(match.start()), f"{what} outside the runtime; {fix}"
    if inside(src.path, rules.OUTPUT_IN) and not inside(src.path, rules.OUTPUT_EXEMPT):
        for match in re.finditer(rules.OUTPUT, src.code):
            yield src.line(match.start()), "output in the core; return an event, a reason or an Error"


def check_sizes(src):
    if inside(src.path, rules.SIZE_EXEMPT):
        return
    lines = src.text.count("\n")
    if lines > rules.MAX_FILE_LINES:
        yield 1, (f"{lines} lines, more than {rules.MAX_FILE_LINES}: it is two things; split it "
                  "(a pure table: SIZE_EXEMPT in tests/tidy/rules.py)")
    bodies = cpp.functions(src.code) if src.is_cpp else python_functions(src)
    for first, last, head in bodies:
        if last - first + 1 > rules.MAX_FUNCTION_LINES:
            yield first, (f"function of {last - first + 1} lines, more than "
                          f"{rules.MAX_FUNCTION_LINES}: split it ({head[-60:]})")


def python_functions(src):
    if not src.path.endswith(".py"):
        return
    for node in ast.walk(ast.parse(src.text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno, node.name


def check_header(src):
    if not src.path.endswith(".h"):
        return
    if not re.search(r"^#pragma once$", src.text, re.M):
        yield 1, "no #pragma once; add it"
    first = [line for line in src.text.split("\n") if line.strip()][:2]
    if not any(line.startswith(("//", "/*")) for line in first):
        yield 1, ("no leading comment; say at the top what this is, who owns it, its thread and what "
                  "must hold")


def check_rule_ids(src, known):
    if known is None or not inside(src.path, rules.RULE_ID_IN):
        return
    for match in re.finditer(rules.RULE_ID, src.remarks):
        if match.group() not in known:
            yield src.line(match.start()), (f"rule {match.group()} is not in {rules.RULE_DOC}; "
                                            "correct the id or write the rule down there")


def check_sql(src):
    if inside(src.path, rules.SQL_IN):
        return
    if src.is_cpp:
        strings = cpp.literals(src.text)
    elif src.path.endswith(".py"):
        strings = [(node.lineno, node.value) for node in ast.walk(ast.parse(src.text))
                   if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    else:
        return
    for line, text in strings:
        if re.search(rules.SQL, text):
            yield line, "SQL outside server/store; add a call to the Store and use it"


def files_of(root):
    for top in rules.ROOTS:
        for folder, subfolders, names in os.walk(os.path.join(root, top)):
            subfolders[:] = [s for s in subfolders if s not in ("__pycache__", "node_modules")
                             and not s.startswith(".")]
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), root)
                if path.endswith((".h", ".cc", ".py", ".yaml", ".yml")) \
                        and not path.endswith(("_pb2.py", "_pb2_grpc.py")):
                    yield path


def rule_ids_known(root):
    try:
        with open(os.path.join(root, rules.RULE_DOC), encoding="utf-8") as file:
            return set(re.findall(rules.RULE_ID, file.read()))
    except OSError:
        return None


def check_tree(root):
    """Yields (path, line, message), in the order of the files."""
    known = rule_ids_known(root)
    if known is None:
        yield rules.RULE_DOC, 1, "missing; every scheduling rule is written there under its id"
    for path in sorted(files_of(root)):
        src = Source(root, path)
        found = []
        if path.endswith((".h", ".cc", ".py")):
            for check in (check_includes, check_calls, check_sizes, check_header, check_sql):
                found += check(src)
        found += check_rule_ids(src, known)
        for line, message in sorted(found):
            yield path, line, message


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(here)))
    args = parser.parse_args()
    count = 0
    for path, line, message in check_tree(args.root):
        print(f"{path}:{line}: {message}")
        count += 1
    if count:
        print(f"tidy: {count} to fix; the rules are in tests/tidy/rules.py")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
