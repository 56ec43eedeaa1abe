#pragma once
// The server's data directory: made with mode 0700, held by one server at a time, with a reserve
// file that is given up when the disk is full. Owned by the store; reserve calls from one thread at
// a time.
#include <cstdint>
#include <string>

#include "core/base/result.h"

namespace gpuq::store {

class DataDir {
 public:
  /// Makes `path` if it is missing and locks it until the object goes. kFailedPrecondition: another
  /// server has it; kPermissionDenied or kUnavailable: the directory cannot be made or written.
  static Result<DataDir> open(const std::string& path, std::int64_t reserve_bytes);
  ~DataDir();
  DataDir(DataDir&& other) noexcept;
  DataDir& operator=(DataDir&&) = delete;

  [[nodiscard]] std::string database_file() const { return path_ + "/gpuq.db"; }

  /// kAborted when lock or database are not, or no more, the files under their names: somebody has
  /// removed or replaced the directory, and what is written now would be gone with it.
  [[nodiscard]] Result<> check_in_place();

  /// Makes the reserve file if it is missing and the disk has four times its size free.
  void ensure_reserve();
  /// Frees the reserve, so that ends of jobs can still be stored. True when there was one.
  bool release_reserve();
  [[nodiscard]] bool has_reserve() const;

 private:
  DataDir(std::string path, int lock_fd, std::int64_t reserve_bytes);
  [[nodiscard]] std::string reserve_file() const { return path_ + "/reserve"; }

  std::string path_;
  int lock_fd_ = -1;
  std::uint64_t database_inode_ = 0;  ///< 0: not looked at yet.
  std::int64_t reserve_bytes_ = 0;
};

/// fsync of a file or directory.
Result<void> sync_path(const std::string& path);

}  // namespace gpuq::store
