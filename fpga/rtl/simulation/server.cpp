// A simulated unit behind standard input and output. Package cosim compiles this file with the unit that Verilator made
// and speaks the other side; its package comment has the frames. All numbers are little endian.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include UNIT_HEADER
#include "verilated.h"

namespace {

bool ReadAll(void* to, size_t bytes) {
  auto* at = static_cast<uint8_t*>(to);
  while (bytes > 0) {
    ssize_t n = read(STDIN_FILENO, at, bytes);
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool WriteAll(const void* from, size_t bytes) {
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

void Clock(UNIT& unit) {
  unit.clk_i = 1;
  unit.eval();
  unit.clk_i = 0;
  unit.eval();
}

void Reset(UNIT& unit) {
  unit.in_valid_i = 0;
  unit.out_ready_i = 0;
  unit.register_write_i = 0;
  unit.rst_ni = 0;
  for (int i = 0; i < 4; i++) Clock(unit);
  unit.rst_ni = 1;
}

struct Transfer {
  uint32_t count, input_seed, output_seed;
};

// Returns the cycles from the first in which a value was offered to the one in which the last result left, or 0 if the
// unit made no progress for far longer than any stall.
uint64_t Run(UNIT& unit, const Transfer& t, const std::vector<uint64_t>& values, const std::vector<uint8_t>& present,
             std::vector<uint64_t>& results) {
  Stalls input(t.input_seed), output(t.output_seed);
  uint32_t sent = 0;
  uint64_t cycles = 0, idle = 0;
  bool offered = false;  // a value that was offered stays offered until it is taken
  while (results.size() < t.count) {
    if (!offered && sent < t.count) offered = !input.Wait();
    unit.in_valid_i = offered;
    // What lies at the input of a cycle without a value must not matter.
    unit.in_data_i = offered ? values[sent] : 0xdeadbeefdeadbeefULL ^ cycles;
#ifdef READS_PRESENCE
    unit.in_present_i = offered ? present[sent] : cycles & 1;
#endif
    unit.out_ready_i = !output.Wait();
    unit.eval();
    bool taken = unit.in_valid_i && unit.in_ready_o;
    bool left = unit.out_valid_o && unit.out_ready_i;
    if (left) results.push_back(unit.out_data_o);
    Clock(unit);
    cycles++;
    if (taken) {
      sent++;
      offered = false;
    }
    idle = taken || left ? 0 : idle + 1;
    if (idle > 100000) return 0;
  }
  unit.in_valid_i = 0;
  unit.out_ready_i = 0;
  return cycles;
}

}  // namespace

int main() {
  auto context = std::make_unique<VerilatedContext>();
  auto unit = std::make_unique<UNIT>(context.get());
  Reset(*unit);
  if (!WriteAll("MRTL1" SOURCE_DIGEST, 5 + 64)) return 1;
  for (uint8_t operation; ReadAll(&operation, 1);) {
    if (operation == 'W') {
      uint16_t address;
      uint64_t data;
      if (!ReadAll(&address, 2) || !ReadAll(&data, 8)) return 1;
      unit->register_write_i = 1;
      unit->register_address_i = address;
      unit->register_data_i = data;
      Clock(*unit);
      unit->register_write_i = 0;
      for (int i = 0; i < 2; i++) Clock(*unit);
    } else if (operation == 'R') {
      Reset(*unit);
    } else if (operation == 'D') {
      Transfer t;
      if (!ReadAll(&t, sizeof t)) return 1;
      std::vector<uint64_t> values(t.count), results;
      std::vector<uint8_t> present(t.count, 1);
      if (!ReadAll(values.data(), values.size() * 8)) return 1;
      if (!ReadAll(present.data(), present.size())) return 1;
      results.reserve(t.count);
      uint64_t cycles = Run(*unit, t, values, present, results);
      results.resize(t.count);
      if (!WriteAll(&cycles, 8) || !WriteAll(results.data(), results.size() * 8)) return 1;
    } else {
      return 1;
    }
  }
  return 0;
}
