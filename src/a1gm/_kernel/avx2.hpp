// Vectors of four doubles, for processors that have them; chosen at run time.
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define A1GM_AVX2 1
#define A1GM_ANY __attribute__((always_inline)) inline  // compiled as its caller is
#include <cpuid.h>
#include <immintrin.h>

#define A1GM_TARGET __attribute__((target("avx2,fma")))
#define A1GM_LAMBDA __attribute__((target("avx2,fma"), always_inline))
#define A1GM_INLINE __attribute__((target("avx2,fma"), always_inline)) inline

namespace a1gm {

// By cpuid, as __builtin_cpu_supports asks for a symbol that not every linker has. The
// system must save the wide registers, too: bits 1 and 2 of the control register XCR0.
inline bool has_avx2() {
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return false;
  if (!(ecx & bit_FMA) || !(ecx & bit_OSXSAVE) || !(ecx & bit_AVX)) return false;
  unsigned saved, high;
  __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  if ((saved & 6) != 6) return false;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & bit_AVX2);
}

// Zero is added at the end, here and below: cells of -0.0 sum to 0.0.
A1GM_INLINE double lane_sum(__m256d v) {
  const __m128d pair =
      _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair))) + 0.0;
}

// The sums of four vectors, in one.
A1GM_INLINE __m256d four_sums(__m256d a, __m256d b, __m256d c, __m256d d) {
  const __m256d ab = _mm256_hadd_pd(a, b), cd = _mm256_hadd_pd(c, d);
  const __m256d sums = _mm256_add_pd(_mm256_permute2f128_pd(ab, cd, 0x20),
                                     _mm256_permute2f128_pd(ab, cd, 0x31));
  return _mm256_add_pd(sums, _mm256_setzero_pd());
}

A1GM_INLINE double lane_min(__m256d v) {
  alignas(32) double lanes[4];
  _mm256_store_pd(lanes, v);
  return std::min(std::min(lanes[0], lanes[1]), std::min(lanes[2], lanes[3]));
}

// The first n lanes.
A1GM_INLINE __m256i head_mask(int64_t n) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_set_epi64x(3, 2, 1, 0));
}

// Four cells, as doubles.
A1GM_INLINE __m256d load(const double* x) { return _mm256_loadu_pd(x); }
A1GM_INLINE __m256d load(const float* x) { return _mm256_cvtps_pd(_mm_loadu_ps(x)); }

// The cells of the lanes in `head`, and zeros; nothing else is read.
A1GM_INLINE __m256d load(const double* x, __m256i head) {
  return _mm256_maskload_pd(x, head);
}
A1GM_INLINE __m256d load(const float* x, __m256i head) {
  const __m256i even = _mm256_set_epi32(0, 0, 0, 0, 6, 4, 2, 0);
  const __m256i halves = _mm256_permutevar8x32_epi32(head, even);
  return _mm256_cvtps_pd(_mm_maskload_ps(x, _mm256_castsi256_si128(halves)));
}

// Lanes to keep for each four bits.
struct Lanes {
  alignas(32) int64_t mask[16][4];
  Lanes() {
    for (int bits = 0; bits < 16; ++bits)
      for (int lane = 0; lane < 4; ++lane) mask[bits][lane] = bits >> lane & 1 ? -1 : 0;
  }
};
inline const Lanes kLanes;

// Turns four vectors: lane k of vector i becomes lane i of vector k.
A1GM_INLINE void turn(__m256d* v) {
  const __m256d a = _mm256_unpacklo_pd(v[0], v[1]), b = _mm256_unpackhi_pd(v[0], v[1]);
  const __m256d c = _mm256_unpacklo_pd(v[2], v[3]), d = _mm256_unpackhi_pd(v[2], v[3]);
  v[0] = _mm256_permute2f128_pd(a, c, 0x20);
  v[1] = _mm256_permute2f128_pd(b, d, 0x20);
  v[2] = _mm256_permute2f128_pd(a, c, 0x31);
  v[3] = _mm256_permute2f128_pd(b, d, 0x31);
}

A1GM_INLINE uint64_t bits_of(__m256d mask) {
  return static_cast<uint64_t>(_mm256_movemask_pd(mask));
}

}  // namespace a1gm
#else
#define A1GM_ANY inline
#endif
