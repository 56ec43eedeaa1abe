#!/usr/bin/env python3
"""Tests of the tidy checks: each rule finds its bad sample and lets its good one pass."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import core_symbols
import cpp
import tidy

HEADER = "#pragma once\n// What it is.\n"
LONG = "".join(f"  x += {i};\n" for i in range(80))


class TidyTest(unittest.TestCase):
    def run_on(self, files):
        files = {"docs/SCHEDULING.md": "## Q1\n## P12\n", **files}
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return [f"{path}:{line}: {message}" for path, line, message in tidy.check_tree(root)]

    def bad(self, path, text, expected):
        found = self.run_on({path: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def good(self, path, text):
        self.assertEqual(self.run_on({path: text}), [])

    def test_include_against_the_layering(self):
        self.bad("core/model/a.cc", '#include "core/sched/b.h"\n', "core/model may not include")
        self.bad("agent/a.cc", '#include "core/model/job.h"\n', "agent may not include")
        self.bad("tests/unit/a.cc", '#include "server/rpc/b.h"\n', "tests/unit may not include")
        self.good("core/engine/a.cc", '#include "core/sched/b.h"\n')
        self.good("server/main.cc", '#include "client/lib/b.h"\n')

    def test_include_not_from_the_root(self):
        self.bad("core/model/a.cc", '#include "job.h"\n', "from the repository root")

    def test_external_header_outside_its_folder(self):
        self.bad("core/model/a.cc", "#include <spdlog/spdlog.h>\n", "belongs to common/runtime")
        self.bad("client/lib/a.cc", "#include <sqlite3.h>\n", "belongs to server/store")
        self.good("server/store/a.cc", "#include <sqlite3.h>\n")

    def test_costly_header_in_a_header(self):
        self.bad("client/cli/a.h", HEADER + "#include <CLI/CLI.hpp>\n", "costly to compile")
        self.good("client/cli/a.cc", "#include <CLI/CLI.hpp>\n")

    def test_clock_calls(self):
        self.bad("server/rpc/a.cc", "auto t = std::chrono::steady_clock::now();\n", "now() outside")
        self.bad("agent/a.cc", "auto t = time(nullptr);\n", "clock function outside")
        self.bad("agent/a.cc", "clock_gettime(CLOCK_BOOTTIME, &ts);\n", "clock function outside")
        self.good("agent/a.cc", "auto t = clock.now(); // not system_clock::now()\n")
        self.good("agent/a.cc", 'auto t = record.time(0); auto s = "time(0)"; run_time(0);\n')
        self.good("core/sim/a.cc", "Time VirtualClock::now() const { return now_; }\n")
        self.good("common/runtime/a.cc", "auto t = std::chrono::steady_clock::now();\n")

    def test_chance(self):
        self.bad("core/sim/a.cc", "int x = rand();\n", "random number outside")
        self.bad("core/sim/a.cc", "std::mt19937_64 random;\n", "unseeded generator outside")
        self.bad("tests/property/a.cc", "std::random_device device;\n", "unseeded generator outside")
        self.good("tests/property/a.cc", "std::mt19937_64 random(seed);\n")

    def test_sleep(self):
        self.bad("agent/a.cc", "std::this_thread::sleep_for(1s);\n", "sleep outside")
        self.bad("agent/a.cc", "::usleep(10);\n", "sleep outside")
        self.bad("tests/unit/a.cc", "sleep(1);\n", "sleep outside")
        self.good("agent/a.cc", 'run("sleep(1)");\n')

    def test_output_in_the_core(self):
        self.bad("core/model/a.cc", 'std::printf("x");\n', "output in the core")
        self.bad("core/model/a.cc", "std::cout << 1;\n", "output in the core")
        self.good("core/model/a.cc", "std::snprintf(buffer, 3, text);\n")
        self.good("client/cli/a.cc", "std::cout << 1;\n")

    def test_long_function(self):
        self.bad("core/model/a.cc", "int f(int x) {\n" + LONG + "}\n", "function of 82 lines")
        self.bad("core/model/a.cc", "namespace a {\nclass B {\n  B() : x_{1}, y_(2) {\n" + LONG +
                 "  }\n};\n}\n", "function of 82 lines")
        self.bad("tests/tidy/a.py", "def f():\n" + "    pass\n" * 80, "function of 81 lines")
        self.good("core/model/a.cc", "const int kTable[] = {\n" + "  1,\n" * 90 + "};\n")
        self.good("core/model/a.cc", "int f(int x) {\n}\n" * 60)

    def test_long_file(self):
        self.bad("core/model/a.cc", "\n" * 601, "601 lines")

    def test_header_shape(self):
        self.bad("core/model/a.h", "// What it is.\nint f();\n", "no #pragma once")
        self.bad("core/model/a.h", "#pragma once\n#include <string>\n// late\n", "no leading comment")
        self.good("core/model/a.h", HEADER)

    def test_rule_ids(self):
        self.bad("core/sched/a.cc", "// Rule Q2 says so.\n", "rule Q2 is not in")
        self.bad("tests/scenario/a.yaml", "name: P11\n", "rule P11 is not in")
        self.good("core/sched/a.cc", "// Rules Q1 and P12.\nint Q7 = 0;\n")

    def test_sql(self):
        self.bad("server/rpc/a.cc", 'run("SELECT id FROM job");\n', "SQL outside server/store")
        self.bad("client/cli/a.cc", 'run(R"(\nDELETE FROM job)");\n', "SQL outside server/store")
        self.bad("tests/e2e/a.py", 'run("UPDATE job SET x = 1")\n', "SQL outside server/store")
        self.good("server/rpc/a.cc", 'say("select a job from the list; nothing to update");\n')
        self.good("server/store/a.cc", 'run("SELECT id FROM job");\n')

    def test_every_call_rule_has_its_fix(self):
        for _, _, _, fix in tidy.rules.CALLS:
            self.assertTrue(fix)


class CppTest(unittest.TestCase):
    def heads(self, code):
        return [head for _, _, head in cpp.functions(code)]

    def test_functions(self):
        self.assertEqual(self.heads("int f() { if (x) { y(); } }"), ["int f()"])
        self.assertEqual(self.heads("struct A { int x = 1; A() {} };"), ["A()"])
        self.assertEqual(self.heads("bool operator==(A a, B b) { return 1; }"),
                         ["bool operator==(A a, B b)"])
        self.assertEqual(self.heads("auto f(int x = 3) -> int { return x; }"),
                         ["auto f(int x = 3) -> int"])
        self.assertEqual(self.heads("enum class E { kA, kB };\nint x[] = {1, f(2)};"), [])

    def test_digit_separators_and_raw_strings(self):
        code, _ = cpp.split("int x = 1'000'000; auto s = R\"(a // \" b)\"; int y; // 'tis\nint z;")
        self.assertIn("int y;", code)
        self.assertIn("int z;", code)
        self.assertNotIn("tis", code)


class CoreSymbolsTest(unittest.TestCase):
    def found(self, *symbols, member="a.cc.o"):
        text = "".join(f"lib.a:{member}:                 U {s}\n" for s in symbols)
        return [kind for _, kind, _ in core_symbols.breaches(text)]

    def test_banned(self):
        self.assertEqual(self.found("std::chrono::_V2::steady_clock::now()"), ["clock"])
        self.assertEqual(self.found("clock_gettime@GLIBC_2.17"), ["clock"])
        self.assertEqual(self.found("pthread_create", "std::thread::join()"), ["thread", "thread"])
        self.assertEqual(self.found("socket", "open64", "nanosleep", "rand"),
                         ["socket", "file", "sleep or timer", "random number or environment"])
        self.assertEqual(self.found("std::basic_ifstream<char>::open(char const*)"), ["file"])

    def test_allowed(self):
        self.assertEqual(self.found("gpuq::State::open(gpuq::JobId)", "memcpy", "gpuq::time(int)",
                                    "operator new(unsigned long)", "abort"), [])
        self.assertEqual(self.found("fprintf", member="check.cc.o"), [])
        self.assertEqual(self.found("fprintf"), ["output"])


if __name__ == "__main__":
    unittest.main()
