// Lines of a table while it is peeled, found by the lines they meet.
#pragma once

#include <cstdint>
#include <vector>

namespace a1gm {

// One line of either side.
struct Line {
  uint64_t name = 0, signature = 0;
  int32_t degree = 0;   // alive lines it meets; 0 when it is gone or empty
  int32_t met_xor = 0;  // columns only: the rows it meets, xored
};

// Finds a line by its signature. A slot whose line has changed since is never hit,
// because the signature compared is the line's present one.
class TwinIndex {
 public:
  explicit TwinIndex(const std::vector<Line>& lines) : lines_(lines) {
    size_t n = 16;
    while (n < lines.size() * 2) n *= 2;
    slots_.assign(n, -1);
  }
  // Another alive line with the same signature, or -1 after entering this one. The
  // line may meet itself on the way, in the slot of an earlier signature: its twin may
  // be further on.
  int32_t find_or_enter(int32_t line) {
    if ((n_used_ + 1) * 10 > slots_.size() * 8) rebuild();
    const uint64_t signature = lines_[line].signature;
    size_t slot = first_slot(signature);
    bool is_here = false;
    for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
      const Line& found = lines_[slots_[slot]];
      if (slots_[slot] == line)
        is_here = true;
      else if (found.degree && found.signature == signature)
        return slots_[slot];
    }
    if (!is_here) {
      slots_[slot] = line;
      ++n_used_;
    }
    return -1;
  }
  void prefetch(int32_t line) const {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(&slots_[first_slot(lines_[line].signature)]);
#else
    (void)line;
#endif
  }

 private:
  size_t first_slot(uint64_t signature) const {
    return static_cast<size_t>(signature) & (slots_.size() - 1);
  }
  void rebuild() {  // drops the slots of lines that are gone or were entered again
    std::vector<int32_t> old(slots_.size(), -1);
    old.swap(slots_);
    std::vector<bool> entered(lines_.size(), false);
    n_used_ = 0;
    for (const int32_t line : old) {
      if (line < 0 || !lines_[line].degree || entered[line]) continue;
      entered[line] = true;
      size_t slot = first_slot(lines_[line].signature);
      while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = line;
      ++n_used_;
    }
  }
  const std::vector<Line>& lines_;
  std::vector<int32_t> slots_;
  size_t n_used_ = 0;
};

}  // namespace a1gm
