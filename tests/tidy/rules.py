"""The tables of the tidy checks. A rule's exceptions are here and nowhere else."""

# ---- who may include whom ---------------------------------------------------------------------
# Folder -> folders it may include besides itself. The longest matching folder counts.
INCLUDES = {
    "core/base": [],
    "core/model": ["core/base"],
    "core/sched": ["core/base", "core/model"],
    "core/state": ["core/base", "core/model"],
    "core/engine": ["core/base", "core/model", "core/sched", "core/state"],
    "core/sim": ["core/base", "core/model", "core/sched", "core/state", "core/engine"],
    "common/policy": ["core/base", "core/model", "core/sim"],
    "common/runtime": ["core/base"],
    "common/snapshot": ["core/base", "core/model", "core/state", "core/engine"],
    "server/store": ["core/base", "core/model", "core/engine"],
    "server/auth": ["core/base", "core/model"],
    "server/rpc": ["core/base", "core/model", "core/state", "core/engine", "core/sim",
                   "server/auth", "common/runtime", "gpuq/v1", "grpc"],
    "server/http": ["core/base", "core/model", "core/state", "core/engine", "server/auth",
                    "common/runtime"],
    "agent": ["core/base", "common/runtime", "gpuq/v1", "grpc"],
    "agent/shim": ["core/base"],
    "client/lib": ["core/base", "gpuq/v1", "grpc"],
    "client/cli": ["core", "client/lib", "common", "gpuq/v1", "grpc"],
    # Wiring: the files directly in server/, and main.cc anywhere.
    "server": ["core", "common", "server", "gpuq/v1", "grpc"],
    # The core-only build compiles these without the rest.
    "tests/unit": ["core", "common/policy", "common/snapshot", "tests"],
    "tests/property": ["core", "common/policy", "common/snapshot", "tests"],
    "tests/scenario": ["core", "common/policy", "common/snapshot", "tests"],
    "tests/sim": ["core", "common/policy", "common/snapshot", "tests"],
    "tests/runtime": ["core/base", "common/runtime", "tests"],
    "tests": ["core", "common", "server", "agent", "client", "gpuq/v1", "grpc", "tests"],
}

# External header -> folders that may include it. Headers that are not named are free.
EXTERNAL = {
    "grpc": ["server/rpc", "server", "agent", "client/lib", "client/cli", "tests"],
    "grpcpp": ["server/rpc", "server", "agent", "client/lib", "client/cli", "tests"],
    "google/protobuf": ["server/rpc", "server", "agent", "client/lib", "client/cli", "tests"],
    "boost": ["common/runtime", "server/http", "server", "agent", "tests"],
    "sqlite3.h": ["server/store", "tests/store", "tests/bench"],
    "spdlog": ["common/runtime"],
    "yaml-cpp": ["common/policy", "common/runtime", "tests"],
    "nlohmann": ["common/policy", "common/snapshot", "server/http", "agent", "client/cli", "tests"],
    "CLI": ["client/cli", "server", "agent", "tests"],
}
# Costly to compile: never in a header, so that few files pay for them.
NOT_IN_HEADERS = ["grpcpp", "boost/beast", "spdlog", "CLI", "yaml-cpp", "nlohmann"]
# Headers that may include them: they are private to their folder.
NOT_IN_HEADERS_EXEMPT = {
    "grpcpp": ["server/rpc", "agent", "client/lib", "tests"],
    "yaml-cpp": ["common/policy", "common/runtime"],
    "nlohmann": ["common/policy", "common/snapshot", "client/cli"],
    "boost/beast": ["server/http"],
}

# ---- calls --------------------------------------------------------------------------------------
# (what, pattern, allowed paths or folders, fix). Matched in code only: no comments, no strings.
# A definition such as `Time BootClock::now() const` is no call.
RUNTIME = ["common/runtime", "tests/runtime", "tests/agent", "tests/client", "tests/e2e", "tests/server",
           "tests/store", "tests/bench",
           "agent/shim"]  # a runtime of its own: it links none of ours
CALLS = [
    ("now()", r"::now\s*\(\s*\)(?!\s*(?:const|noexcept|\{))", RUNTIME + ["tests", "agent/clock.h", "agent/clock.cc",
                                       # gRPC counts deadlines on its own clock.
                                       "agent/grpc_transport.cc", "client/lib/client.cc",
                                       "client/lib/deadline.cc"],
     "take the time as an argument, or a gpuq::Clock"),
    ("clock function",
     r"(?<![\w.>])(?:std::|::)?(?:time\s*\(\s*(?:NULL|nullptr|0|&)|clock_gettime\s*\(|gettimeofday\s*\()",
     RUNTIME + ["agent/clock.cc"],
     "take the time as an argument, or a gpuq::Clock"),
    ("random number", r"(?<![\w.>])(?:std::|::)?(?:s?rand|rand_r|[dlm]rand48|getrandom)\s*\(",
     RUNTIME, "take a seeded generator as an argument"),
    ("unseeded generator", r"\brandom_device\b|\bmt19937(?:_64)?\s+\w*[a-zA-Z0-9]\s*(?:;|\{\s*\})",
     ["common/runtime"], "take a seed as an argument"),
    ("sleep", r"(?<![\w.>])(?:\w+::)*(?:u?sleep|nanosleep|clock_nanosleep|sleep_for|sleep_until)\s*\(",
     RUNTIME, "wait for an event, or post a timer on the gpuq::Executor"),
]
# The core neither prints nor logs.
OUTPUT = r"(?<!\w)(?:v?f?printf|puts|fputs)\s*\(|\bstd::(?:cout|cerr|clog|print)\b|\bspdlog::"
OUTPUT_IN = ["core"]
OUTPUT_EXEMPT = ["core/base/check.cc"]  # a broken invariant says so before it aborts

# ---- sizes --------------------------------------------------------------------------------------
MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 600
# Tables and texts whose length says nothing about their difficulty.
SIZE_EXEMPT = []

# ---- rule ids -----------------------------------------------------------------------------------
RULE_ID = r"(?<![\w.-])(?:[QOPNJF][1-9][0-9]?)(?![\w-])"
RULE_DOC = "docs/SCHEDULING.md"
RULE_ID_IN = ["core", "tests/unit", "tests/property", "tests/scenario", "tests/sim"]

# ---- SQL ----------------------------------------------------------------------------------------
SQL = (r"\b(?:SELECT\s+[\w*(]|INSERT\s+(?:OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|"
       r"(?:CREATE|DROP|ALTER)\s+(?:UNIQUE\s+)?(?:TABLE|INDEX|TRIGGER|VIEW)|PRAGMA\s+\w|"
       r"BEGIN\s+(?:IMMEDIATE|EXCLUSIVE|TRANSACTION)|ROLLBACK\b|SAVEPOINT\s)")
SQL_IN = ["server/store", "tests/store", "tests/bench", "tests/tidy"]

# Folders of the tree that hold our sources.
ROOTS = ["core", "common", "server", "agent", "client", "tests", "cmake", "tools"]
