#pragma once
// Files that survive a crash: atomic durable writes, directory sync, locks. Blocking; any thread.
#include <string>
#include <string_view>

#include "common/runtime/unique_fd.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace gpuq {

enum class Durability {
  kSynced,      ///< Survives power loss once the call returns.
  kAtomicOnly,  ///< Readers see all or nothing; may be lost with the machine, not with the process.
};

/// Replaces `path` by `content` through a temporary file beside it and a rename. `mode`: permission
/// bits.
Result<void> write_file(const std::string& path, std::string_view content,
                        Durability durability = Durability::kSynced, unsigned mode = 0600);
/// Makes `path`, which must not exist, synced. A crash before the return may leave it incomplete.
/// One flush of the disk less than write_file, for the first file of a new directory. The caller
/// syncs the directory.
Result<void> write_new_file(const std::string& path, std::string_view content,
                            unsigned mode = 0600);
/// Whole content. NOT_FOUND if there is no such file.
Result<std::string> read_file(const std::string& path);
/// fsync of a directory, so that names made in it survive power loss.
Result<void> sync_dir(const std::string& path);
/// mkdir -p. Existing directories keep their mode.
Result<void> make_dirs(const std::string& path, unsigned mode = 0700);
/// Removes a file or a directory with all that is in it; no error if it is not there. Does not
/// follow links.
Result<void> remove_tree(const std::string& path);
bool path_exists(const std::string& path);

/// Exclusive flock on `path` (made if missing), not inherited by programs that are executed. Held
/// until the descriptor and all its copies are closed. FAILED_PRECONDITION if somebody else holds
/// it for longer than `patience` (blocks; milliseconds): a program that its dying holder is about
/// to execute keeps the lock for a moment.
Result<UniqueFd> lock_file(const std::string& path, Duration patience = Duration(0));
/// Whether somebody holds the flock of `path`. False if there is no such file.
bool is_locked(const std::string& path);

/// INTERNAL error "what path: strerror(errno)".
Error errno_error(std::string_view what, std::string_view path);
/// Random UUID (version 4) from the kernel.
std::string random_uuid();
/// Uniform in [0, bound); 0 if bound is 0. From the kernel's generator: for jitter, not for
/// decisions.
unsigned random_below(unsigned bound);

}  // namespace gpuq
