// A simulated kernel of package packaging behind standard input and output, with a host and memories around it. A
// Simulator of package cosim speaks the other side, with the frames of simulation/server.cpp and three more, numbers
// little endian:
//
//   'L' room u32        results that have room in the next runs; without this frame, all have
//   'E' faults u8       in the next runs, bit 0: the first read fails; bit 1: the first write fails
//   'S'                 answered with the registers results and status of the last run, u32 each
//
// The program ends with a message if the kernel breaks a rule of AXI4 or writes where no result belongs.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

#include "pipes.h"
#include UNIT_HEADER
#include "verilated.h"

namespace {

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "kernel: %s\n", what);
  std::exit(1);
}

template <typename T>
bool Read(T* to, size_t count = 1) {
  return ReadAll(to, count * sizeof(T));
}

void Write(const void* from, size_t bytes) {
  if (!WriteAll(from, bytes)) std::exit(1);
}

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
  for (size_t i = 0; i < N / 2; i++) words[i] = port[2 * i] | static_cast<uint64_t>(port[2 * i + 1]) << 32;
}

constexpr size_t kInputBytes = 8 * INPUT_BEAT, kOutputBytes = 8 * OUTPUT_BEAT;
constexpr uint64_t kInputBase = 0x123456000, kOutputBase = 0x9abcdf000, kWindowBase = 0x80000;
enum Register : uint32_t {
  kControl = 0x00, kInput = 0x10, kTransfers = 0x18, kOutput = 0x20, kRoom = 0x28, kResults = 0x30, kStatus = 0x38,
  kCycles = 0x40,
};

struct Burst {
  uint64_t address;
  uint32_t beats;
};

class Board {
 public:
  Board() : kernel_(std::make_unique<UNIT>(&context_)) {
    kernel_->ap_rst_n = 0;
    for (int i = 0; i < 4; i++) Clock();
    kernel_->ap_rst_n = 1;
  }

  void Reset() {
    kernel_->ap_rst_n = 0;
    for (int i = 0; i < 4; i++) Clock();
    kernel_->ap_rst_n = 1;
  }

  void Store(uint32_t offset, uint32_t value) {
    bool address = false, word = false;
    for (int i = 0; !address || !word; i++) {
      if (i > 10000) Fail("a write of a register is not taken");
      kernel_->s_axi_control_awvalid = !address && !host_.Wait();
      kernel_->s_axi_control_awaddr = offset;
      kernel_->s_axi_control_wvalid = !word && !host_.Wait();
      kernel_->s_axi_control_wdata = value;
      kernel_->s_axi_control_wstrb = 0xf;
      kernel_->eval();
      address |= kernel_->s_axi_control_awvalid && kernel_->s_axi_control_awready;
      word |= kernel_->s_axi_control_wvalid && kernel_->s_axi_control_wready;
      Cycle();
    }
    kernel_->s_axi_control_awvalid = 0;
    kernel_->s_axi_control_wvalid = 0;
    for (int i = 0;; i++) {
      if (i > 10000) Fail("a write of a register is not answered");
      kernel_->s_axi_control_bready = !host_.Wait();
      kernel_->eval();
      bool answered = kernel_->s_axi_control_bvalid && kernel_->s_axi_control_bready;
      Cycle();
      if (answered) break;
    }
    kernel_->s_axi_control_bready = 0;
  }

  uint32_t Load(uint32_t offset) {
    for (bool taken = false; !taken;) {
      kernel_->s_axi_control_arvalid = !host_.Wait();
      kernel_->s_axi_control_araddr = offset;
      kernel_->eval();
      taken = kernel_->s_axi_control_arvalid && kernel_->s_axi_control_arready;
      Cycle();
    }
    kernel_->s_axi_control_arvalid = 0;
    for (int i = 0;; i++) {
      if (i > 10000) Fail("a read of a register is not answered");
      kernel_->s_axi_control_rready = !host_.Wait();
      kernel_->eval();
      bool come = kernel_->s_axi_control_rvalid && kernel_->s_axi_control_rready;
      uint32_t value = kernel_->s_axi_control_rdata;
      Cycle();
      kernel_->s_axi_control_rready = 0;
      if (come) return value;
    }
  }

  void StoreLong(uint32_t offset, uint64_t value) {
    Store(offset, static_cast<uint32_t>(value));
    Store(offset + 4, static_cast<uint32_t>(value >> 32));
  }

  // Returns the cycles of a run, or 0 if it does not end.
  uint32_t Run(std::vector<uint64_t> beats, uint32_t count, uint32_t input_seed, uint32_t output_seed) {
    input_ = std::move(beats);
    output_.clear();
    reads_ = Stalls(input_seed);
    writes_ = Stalls(output_seed);
    host_ = Stalls(input_seed ^ output_seed);
    failing_ = faults_;
    beat_first_ = output_seed % 2 == 1;
    StoreLong(kInput, kInputBase | 0xfff);  // the kernel's addresses are multiples of 4096
    StoreLong(kOutput, kOutputBase);
    Store(kTransfers, count);
    Store(kRoom, room_);
    Store(kControl, 1);
    if (input_seed == 0 && output_seed == 0 && count > 64) {  // the run is under way: nothing of this changes it
      Store(kTransfers, 1);
      Store(kControl, 1);
    }
    uint64_t quiet = 0, seen = moved_;
    while ((Load(kControl) & 2) == 0) {
      quiet = moved_ == seen ? quiet + 1 : 0;
      seen = moved_;
      if (quiet > 20000) return 0;
    }
    if (Load(kControl) != 6) Fail("a kernel that has ended is not idle");
    if (!asked_.empty() || !open_.empty() || !beats_.empty() || answers_ != 0) Fail("a run ended before its bursts");
    return Load(kCycles);
  }

  const std::vector<uint64_t>& output() const { return output_; }
  void set_room(uint32_t room) { room_ = room; }
  void set_faults(uint8_t faults) { faults_ = faults; }

 private:
  // A channel whose sender is the kernel: what is offered stays until it is taken.
  struct Offer {
    bool waits = false;
    std::vector<uint64_t> content;
    void Check(bool valid, bool ready, std::vector<uint64_t> now) {
      if (waits && (!valid || now != content)) Fail("what was offered to the memory changed before it was taken");
      waits = valid && !ready;
      content = std::move(now);
    }
  };

  static void CheckBurst(uint64_t address, uint32_t beats, size_t bytes, uint64_t base, uint64_t end) {
    if (address % bytes != 0 || address % 4096 + beats * bytes > 4096) Fail("a burst crosses 4096 bytes");
    if (address < base || address + beats * bytes > end) Fail("a burst leaves its buffer");
  }

  // One cycle of the kernel and of the memories. The host's side is as its caller has set it.
  void Cycle() {
    UNIT& k = *kernel_;
    k.m_axi_input_arready = !reads_.Wait();
    if (!read_offered_ && !asked_.empty()) read_offered_ = !reads_.Wait();
    k.m_axi_input_rvalid = read_offered_;
    uint64_t data[INPUT_BEAT];
    for (size_t i = 0; i < INPUT_BEAT; i++) {
      data[i] = read_offered_ ? input_[(asked_[0].address - kInputBase) / 8 + i] : 0xdeadbeefdeadbeef;
    }
    Put(k.m_axi_input_rdata, data);
    k.m_axi_input_rresp = read_offered_ && (failing_ & 1) ? 2 : 0;
    k.m_axi_input_rlast = read_offered_ && asked_[0].beats == 1;
    k.m_axi_output_awready = !writes_.Wait() && (!beat_first_ || k.m_axi_output_wvalid);
    k.m_axi_output_wready = !writes_.Wait() && (!beat_first_ || !open_.empty());
    if (!answer_offered_ && answers_ > 0) answer_offered_ = !writes_.Wait();
    k.m_axi_output_bvalid = answer_offered_;
    k.m_axi_output_bresp = answer_offered_ && (failing_ & 2) ? 2 : 0;
    k.eval();

    std::vector<uint64_t> words(OUTPUT_BEAT);
    Get(k.m_axi_output_wdata, words.data());
    words.push_back(k.m_axi_output_wlast);
    read_address_.Check(k.m_axi_input_arvalid, k.m_axi_input_arready, {k.m_axi_input_araddr, k.m_axi_input_arlen});
    write_address_.Check(k.m_axi_output_awvalid, k.m_axi_output_awready, {k.m_axi_output_awaddr, k.m_axi_output_awlen});
    write_data_.Check(k.m_axi_output_wvalid, k.m_axi_output_wready, words);

    if (k.m_axi_input_rvalid && k.m_axi_input_rready) {
      read_offered_ = false;
      failing_ &= ~1;
      moved_++;
      asked_[0].address += kInputBytes;
      if (--asked_[0].beats == 0) asked_.pop_front();
    }
    if (k.m_axi_input_arvalid && k.m_axi_input_arready) {
      if (1u << k.m_axi_input_arsize != kInputBytes || k.m_axi_input_arburst != 1) Fail("beats of another size");
      Burst b{k.m_axi_input_araddr, k.m_axi_input_arlen + 1u};
      CheckBurst(b.address, b.beats, kInputBytes, kInputBase, kInputBase + 8 * input_.size());
      asked_.push_back(b);
    }
    if (k.m_axi_output_bvalid && k.m_axi_output_bready) {
      answer_offered_ = false;
      failing_ &= ~2;
      answers_--;
    }
    if (k.m_axi_output_wvalid && k.m_axi_output_wready) {
      beats_.push_back(words);
      moved_++;
    }
    if (k.m_axi_output_awvalid && k.m_axi_output_awready) {
      if (1u << k.m_axi_output_awsize != kOutputBytes || k.m_axi_output_awburst != 1) Fail("beats of another size");
      Burst b{k.m_axi_output_awaddr, k.m_axi_output_awlen + 1u};
      CheckBurst(b.address, b.beats, kOutputBytes, kOutputBase, kOutputBase + uint64_t{kOutputBytes} * room_);
      open_.push_back(b);
    }
    for (; !open_.empty() && !beats_.empty(); beats_.pop_front()) {
      const std::vector<uint64_t>& beat = beats_.front();
      size_t at = (open_[0].address - kOutputBase) / 8;
      if (at != output_.size()) Fail("results are not written in their order");
      output_.insert(output_.end(), beat.begin(), beat.begin() + OUTPUT_BEAT);
      open_[0].address += kOutputBytes;
      bool last = --open_[0].beats == 0;
      if (last != (beat[OUTPUT_BEAT] != 0)) Fail("the mark of a burst's last beat is wrong");
      if (last) {
        open_.pop_front();
        answers_++;
      }
    }
    Clock();
  }

  void Clock() {
    kernel_->ap_clk = 1;
    kernel_->eval();
    kernel_->ap_clk = 0;
    kernel_->eval();
  }

  VerilatedContext context_;
  std::unique_ptr<UNIT> kernel_;
  Stalls reads_{0}, writes_{0}, host_{0};
  std::vector<uint64_t> input_, output_;
  std::deque<Burst> asked_, open_;           // of reads and of writes
  std::deque<std::vector<uint64_t>> beats_;  // of writes, whose burst's address has not come
  bool beat_first_ = false;  // the memory takes an address only beside a beat, and beats only behind their address
  uint32_t answers_ = 0;     // of writes, which are to come
  bool read_offered_ = false, answer_offered_ = false;
  Offer read_address_, write_address_, write_data_;
  uint32_t room_ = 1u << 28;
  uint8_t faults_ = 0, failing_ = 0;
  uint64_t moved_ = 0;  // beats
};

}  // namespace

int main() {
  Board board;
  Write("MRTL2" SOURCE_DIGEST, 5 + 64);
  for (uint8_t operation; Read(&operation);) {
    if (operation == 'W') {
      uint16_t address;
      uint64_t data;
      if (!Read(&address) || !Read(&data)) return 1;
      board.StoreLong(static_cast<uint32_t>(kWindowBase + 8 * address), data);
    } else if (operation == 'R') {
      board.Reset();
    } else if (operation == 'L') {
      uint32_t room;
      if (!Read(&room)) return 1;
      board.set_room(room);
    } else if (operation == 'E') {
      uint8_t faults;
      if (!Read(&faults)) return 1;
      board.set_faults(faults);
    } else if (operation == 'S') {
      uint32_t state[] = {board.Load(kResults), board.Load(kStatus)};
      Write(state, sizeof state);
    } else if (operation == 'D') {
      uint32_t head[3];
      if (!Read(head, 3)) return 1;
      std::vector<uint64_t> words(size_t{head[0]} * INPUT_WORDS);
      if (!Read(words.data(), words.size())) return 1;
      std::vector<uint64_t> beats(size_t{head[0]} * INPUT_BEAT, 0x5555555555555555);  // the unit does not see the fill
      for (size_t i = 0; i < words.size(); i++) beats[i / INPUT_WORDS * INPUT_BEAT + i % INPUT_WORDS] = words[i];
      uint64_t cycles = board.Run(std::move(beats), head[0], head[1], head[2]);
      std::vector<uint64_t> results;
      for (size_t i = 0; i < board.output().size(); i++) {
        if (i % OUTPUT_BEAT < OUTPUT_WORDS) {
          results.push_back(board.output()[i]);
        } else if (board.output()[i] != 0) {
          Fail("a result is not filled with zeros");
        }
      }
      uint64_t count = results.size() / OUTPUT_WORDS;
      Write(&cycles, 8);
      Write(&count, 8);
      Write(results.data(), results.size() * 8);
    } else {
      return 1;
    }
  }
  return 0;
}
