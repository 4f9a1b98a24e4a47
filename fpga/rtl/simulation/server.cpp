// A simulated unit behind standard input and output. Package cosim compiles this file with the unit that Verilator made
// and speaks the other side; its package comment has the frames. All numbers are little endian.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "pipes.h"
#include UNIT_HEADER
#include "verilated.h"

namespace {

// The words of 64 bits that hold a transfer of BITS bits, and what is used of the last.
constexpr size_t Words(size_t bits) { return (bits + 63) / 64; }
constexpr uint64_t LastWordMask(size_t bits) { return ~0ULL >> (64 * Words(bits) - bits); }
constexpr size_t kInputWords = Words(INPUT_BITS), kOutputWords = Words(OUTPUT_BITS);

// Put and Get copy between words and a port, which is an integer or, above 64 bits, an array of 32-bit words.
template <typename Port>
void Put(Port& port, const uint64_t* words) {
  port = static_cast<Port>(words[0]);
}
template <size_t N>
void Put(VlWide<N>& port, const uint64_t* words) {
  for (size_t i = 0; i < N; i++) port[i] = static_cast<EData>(words[i / 2] >> (32 * (i % 2)));
}
template <typename Port>
void Get(const Port& port, uint64_t* words) {
  words[0] = port;
}
template <size_t N>
void Get(const VlWide<N>& port, uint64_t* words) {
  for (size_t i = 0; i < Words(32 * N); i++) words[i] = 0;
  for (size_t i = 0; i < N; i++) words[i / 2] |= static_cast<uint64_t>(port[i]) << (32 * (i % 2));
}

bool IsLast(const uint64_t* transfer, int bit) {
  return bit >= 0 && (transfer[bit / 64] >> (bit % 64) & 1) != 0;
}

// A cycle is two evaluations: one with the cycle's inputs and the clock low, behind which the outputs are those of the
// cycle, and one with the clock high.
void Settle(UNIT& unit) {
  unit.clk_i = 0;
  unit.eval();
}

void Clock(UNIT& unit) {
  unit.clk_i = 1;
  unit.eval();
}

void Idle(UNIT& unit, int cycles) {
  for (int i = 0; i < cycles; i++) {
    Settle(unit);
    Clock(unit);
  }
}

void Reset(UNIT& unit) {
  unit.in_valid_i = 0;
  unit.out_ready_i = 0;
  unit.register_write_i = 0;
  unit.rst_ni = 0;
  Idle(unit, 4);
  unit.rst_ni = 1;
}

struct Transfer {
  uint32_t count, input_seed, output_seed;
};

// How many results more than transfers a unit may make: far more than any run asks for.
constexpr size_t kMostMoreResults = 1 << 20;

// Returns the cycles from the first in which a transfer was offered to the one in which the last result left, or 0 if
// the unit made no progress for far longer than any stall, or results without end. The last result is the one behind as
// many results as there are transfers or, in a unit that marks the last transfer of a section, that of the last section.
uint64_t Run(UNIT& unit, const Transfer& t, const std::vector<uint64_t>& words, std::vector<uint64_t>& results) {
  Idle(unit, 2);  // what the unit derives from registers follows them
  Stalls input(t.input_seed), output(t.output_seed);
  uint64_t left = t.count;
  if (INPUT_LAST >= 0) {
    left = 0;
    for (size_t i = 0; i < t.count; i++) left += IsLast(&words[i * kInputWords], INPUT_LAST);
  }
  uint32_t sent = 0;
  uint64_t cycle = 0, cycles = 0, idle = 0;
  bool offered = false;  // a transfer that was offered stays offered until it is taken
  while (left > 0 || sent < t.count) {
    if (!offered && sent < t.count) offered = !input.Wait();
    unit.in_valid_i = offered;
    // What lies at the input of a cycle without a transfer must not matter.
    uint64_t offer[kInputWords];
    for (size_t i = 0; i < kInputWords; i++) {
      offer[i] = offered ? words[sent * kInputWords + i] : 0xdeadbeefdeadbeefULL ^ cycle * 0x100000001ULL;
    }
    offer[kInputWords - 1] &= LastWordMask(INPUT_BITS);
    Put(unit.in_data_i, offer);
    unit.out_ready_i = !output.Wait();
    Settle(unit);
    bool taken = unit.in_valid_i && unit.in_ready_o;
    bool leaves = unit.out_valid_o && unit.out_ready_i;
    if (leaves) {
      if (results.size() / kOutputWords >= t.count + kMostMoreResults) return 0;
      results.resize(results.size() + kOutputWords);
      uint64_t* result = &results[results.size() - kOutputWords];
      Get(unit.out_data_o, result);
      if (INPUT_LAST < 0 || IsLast(result, OUTPUT_LAST)) left--;
      cycles = cycle + 1;
    }
    Clock(unit);
    cycle++;
    if (taken) {
      sent++;
      offered = false;
    }
    idle = taken || leaves ? 0 : idle + 1;
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
  if (!WriteAll("MRTL2" SOURCE_DIGEST, 5 + 64)) return 1;
  for (uint8_t operation; ReadAll(&operation, 1);) {
    if (operation == 'W') {
      uint16_t address;
      uint64_t data;
      if (!ReadAll(&address, 2) || !ReadAll(&data, 8)) return 1;
      unit->register_write_i = 1;
      unit->register_address_i = address;
      unit->register_data_i = data;
      Idle(*unit, 1);
      unit->register_write_i = 0;
    } else if (operation == 'R') {
      Reset(*unit);
    } else if (operation == 'D') {
      Transfer t;
      if (!ReadAll(&t, sizeof t)) return 1;
      std::vector<uint64_t> words(t.count * kInputWords), results;
      if (!ReadAll(words.data(), words.size() * 8)) return 1;
      uint64_t cycles = Run(*unit, t, words, results);
      uint64_t count = results.size() / kOutputWords;
      if (!WriteAll(&cycles, 8) || !WriteAll(&count, 8) || !WriteAll(results.data(), results.size() * 8)) return 1;
    } else {
      return 1;
    }
  }
  return 0;
}
