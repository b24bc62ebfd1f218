// Tables of bits: one for each cell, 64 to a word.
#pragma once

#include <cstdint>

namespace a1gm {

// A 0/1 table as bits, row by row.
struct BitMask {
  const uint64_t* bits;
  int64_t n, m, words;
};

// Sums of ever more neighbouring bits. Compilers call a function for it where they may
// not expect the instruction of newer processors.
inline int count_bits(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555;
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return static_cast<int>(x * 0x0101010101010101 >> 56);
}

// Observed cells of a row.
inline int64_t n_observed_in(const BitMask& mask, int64_t row) {
  int64_t count = 0;
  for (int64_t w = 0; w < mask.words; ++w)
    count += count_bits(mask.bits[row * mask.words + w]);
  return count;
}

inline void prefetch(const void* address) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address, 1);
#else
  (void)address;
#endif
}

inline int lowest_bit(uint64_t x) {
#if defined(__GNUC__) || defined(__clang__)
  return __builtin_ctzll(x);
#else
  int n = 0;
  while (!(x >> n & 1)) ++n;
  return n;
#endif
}

}  // namespace a1gm
