// Distinct patterns of rows, their column sums, and the pattern of each row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "sums.hpp"
#include "pass/tile.hpp"

namespace a1gm {

inline uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Distinct patterns in order of first appearance; keys are compared word for word.
class PatternIndex {
 public:
  // A longer table is worth a larger cache: fewer patterns share a place in it.
  PatternIndex(int64_t words, int64_t n_rows)
      : words_(words),
        slots_(64, -1),
        place_{kKeyMix, n_rows < 4'000 ? 58 : 52},
        known_(words == 1 ? size_t{1} << (64 - place_.shift) : 0) {}

  // A small cache in front of the table, for keys of one word.
  KnownKey& cached(uint64_t key) { return known_[place_(key)]; }
  KnownKey* known() { return known_.data(); }
  const KeyPlace& place() const { return place_; }

  // Puts a key into the cache. Two patterns that share a place push each other out at
  // every row: when that goes on, all get other places.
  void remember(uint64_t key, int32_t id) {
    const KnownKey& before = cached(key);
    if (before.id >= 0 && before.key != key && ++n_pushed_ % kPushed == 0 &&
        n_pushed_ <= kMoves * kPushed) {
      place_.factor = mix(place_.factor) | 1;
      std::fill(known_.begin(), known_.end(), KnownKey{});
    }
    cached(key) = {key, id};
  }
  int64_t size() const { return size_; }
  std::vector<uint64_t> keys;

  int32_t find_or_insert(const uint64_t* key) {
    if (last_ >= 0 && same(last_, key)) return last_;
    size_t slot = hash(key) & (slots_.size() - 1);
    while (slots_[slot] >= 0) {
      if (same(slots_[slot], key)) return last_ = slots_[slot];
      slot = (slot + 1) & (slots_.size() - 1);
    }
    if (size_ == INT32_MAX)
      throw std::invalid_argument("patterns must be fewer than 2^31");
    last_ = slots_[slot] = static_cast<int32_t>(size_++);
    keys.insert(keys.end(), key, key + words_);
    if (static_cast<size_t>(size_) * 2 > slots_.size()) grow();
    return last_;
  }

 private:
  bool same(int32_t id, const uint64_t* key) const {
    const uint64_t* k = &keys[static_cast<size_t>(id * words_)];
    return words_ == 1 ? *k == *key
                       : std::memcmp(k, key, sizeof(uint64_t) * words_) == 0;
  }
  size_t hash(const uint64_t* key) const {
    uint64_t h = 0;
    for (int64_t w = 0; w < words_; ++w) h = mix(h + 0x9e3779b97f4a7c15ULL + key[w]);
    return static_cast<size_t>(h);
  }
  void grow() {
    std::vector<int32_t> bigger(slots_.size() * 4, -1);
    slots_.swap(bigger);
    for (int64_t id = 0; id < size_; ++id) {
      size_t slot = hash(&keys[static_cast<size_t>(id * words_)]) & (slots_.size() - 1);
      while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = static_cast<int32_t>(id);
    }
  }
  static constexpr int64_t kPushed = 64, kMoves = 4;
  int64_t words_, size_ = 0, n_pushed_ = 0;
  int32_t last_ = -1;
  std::vector<int32_t> slots_;
  KeyPlace place_;
  std::vector<KnownKey> known_;
};

// Zeroed memory for the open runs of the patterns, many patterns to an allocation.
// Each run is padded to whole cache lines.
class RunMemory {
 public:
  explicit RunMemory(int64_t cols) : stride_((cols + kPadding + 7) & ~int64_t{7}) {}
  double* next() {
    if (left_ == 0) {
      left_ = std::clamp<int64_t>(kChunk / stride_, 1, 2 * total_ + 4);
      const auto n = static_cast<size_t>(left_ * stride_);
      chunks_.emplace_back(new double[n + kLine]());
      // A vector that straddles two cache lines is slow to store and to load again.
      const auto address = reinterpret_cast<uintptr_t>(chunks_.back().get());
      at_ = chunks_.back().get() + (kLine - address / 8 % kLine) % kLine;
    }
    --left_;
    ++total_;
    double* run = at_;
    at_ += stride_;
    return run;
  }

 private:
  static constexpr int64_t kChunk = 1 << 17;
  static constexpr size_t kLine = 8;  // doubles in a cache line
  int64_t stride_, left_ = 0, total_ = 0;
  double* at_ = nullptr;
  std::vector<std::unique_ptr<double[]>> chunks_;
};

// Column sums of one pattern: short runs, then a compensated pair.
class ColumnSums {
 public:
  ColumnSums(int64_t cols, double* run) : cols_(cols), run_(run) {}
  double* run() { return run_; }
  void flush() {
    if (!hi_) {
      hi_.reset(new double[static_cast<size_t>(cols_)]());
      lo_.reset(new double[static_cast<size_t>(cols_)]());
    }
    for (int64_t j = 0; j < cols_; ++j) {
      two_sum(run_[j], hi_[j], lo_[j]);
      run_[j] = 0.0;
    }
  }
  // Adds another's sums.
  void absorb(ColumnSums& other) {
    if (!hi_ && !other.hi_) {  // two short runs make one
      for (int64_t j = 0; j < cols_; ++j) run_[j] += other.run_[j];
      return;
    }
    flush();
    other.flush();
    for (int64_t j = 0; j < cols_; ++j) {
      two_sum(other.hi_[j], hi_[j], lo_[j]);
      lo_[j] += other.lo_[j];
    }
  }
  void write(double* out) const {
    for (int64_t j = 0; j < cols_; ++j)
      out[j] = hi_ ? hi_[j] + (lo_[j] + run_[j]) : run_[j];
  }

 private:
  int64_t cols_;
  double* run_;  // in the worker's RunMemory
  std::unique_ptr<double[]> hi_, lo_;
};

}  // namespace a1gm
