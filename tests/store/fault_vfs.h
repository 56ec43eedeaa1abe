#pragma once
// A SQLite VFS over the system's that fails writes and syncs when told to. One per process, named
// kFaultVfs. The plan is shared by all files opened through it.
#include <cstdint>

namespace gpuq::store {

inline constexpr const char* kFaultVfs = "gpuq-fault";

enum class Fault {
  kIoError,     ///< EIO, nothing written.
  kShortWrite,  ///< Half is written, then EIO. A sync just fails.
  kDiskFull,    ///< Half is written, then ENOSPC. A sync just fails.
};

/// Registers the VFS; repeating it is harmless.
void register_fault_vfs();

/// From now on counts writes and syncs, and fails number `nth` (from 1), or all from there on.
void arm_fault(Fault fault, std::int64_t nth, bool and_all_after);
/// Fails nothing any more. Returns how many writes and syncs were counted since arm_fault().
std::int64_t disarm_fault();
/// True when a fault was injected since arm_fault().
bool fault_happened();

}  // namespace gpuq::store
