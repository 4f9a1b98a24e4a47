// What every simulated program has: the pipes to package cosim, and sides that wait at random.
#pragma once
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>

inline bool ReadAll(void* to, size_t bytes) { return std::fread(to, 1, bytes, stdin) == bytes; }

inline bool WriteAll(const void* from, size_t bytes) {
  auto* at = static_cast<const uint8_t*>(from);
  while (bytes > 0) {
    ssize_t n = write(STDOUT_FILENO, at, bytes);
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

// Decides in each cycle whether a side waits. Seed 0 never waits. Otherwise the share of waiting changes every 64
// cycles, among one in two, seven in eight, 39 in 40, and never, so that both full and empty FIFOs occur.
class Stalls {
 public:
  explicit Stalls(uint32_t seed) : state_(seed) {}

  bool Wait() {
    if (state_ == 0) return false;
    if (cycle_++ % 64 == 0) share_ = Next() % 4;
    static constexpr uint32_t kOneIn[] = {2, 8, 40};
    return share_ < 3 && Next() % kOneIn[share_] != 0;
  }

 private:
  uint32_t Next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_;
  }

  uint32_t state_;
  uint32_t share_ = 0;
  uint64_t cycle_ = 0;
};
