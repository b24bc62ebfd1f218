// Tables of bits: one for each cell, 64 to a word.
#pragma once

#include <cstdint>

namespace a1gm {

// A 0/1 table as bits, row by row.
struct BitMask {
  const uint64_t* bits;
  int64_t n, m, words;
};

// Puts rows of few bits among longer ones, from column `first` on.
inline void put_bits(const uint64_t* from, int64_t words, int64_t rows, int64_t first,
                     uint64_t* to, int64_t to_words) {
  const int64_t shift = first & 63;
  if (to_words == 1) {
    for (int64_t i = 0; i < rows; ++i) to[i] |= from[i] << shift;
    return;
  }
  to += first >> 6;
  for (int64_t i = 0; i < rows; ++i, to += to_words)
    for (int64_t w = 0; w < words; ++w) {
      const uint64_t bits = *from++;
      to[w] |= bits << shift;
      const uint64_t carried = shift != 0 ? bits >> (64 - shift) : 0;
      if (carried != 0) to[w + 1] |= carried;
    }
}

// Sums of ever more neighbouring bits. Compilers call a function for it where they may
// not expect the instruction of newer processors.
inline int count_bits(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555;
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return static_cast<int>(x * 0x0101010101010101 >> 56);
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
