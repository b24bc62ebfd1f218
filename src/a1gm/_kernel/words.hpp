// Bits of a 64-bit word.
#pragma once

#include <cstdint>

namespace a1gm {

// A 0/1 table as bits, row by row.
struct BitMask {
  const uint64_t* bits;
  int64_t n, m, words;
};

inline int count_bits(uint64_t x) {
#if defined(__GNUC__) || defined(__clang__)
  return __builtin_popcountll(x);
#else
  int n = 0;
  for (; x; x &= x - 1) ++n;
  return n;
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
