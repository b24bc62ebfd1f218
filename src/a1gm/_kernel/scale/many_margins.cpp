#include "scale/many_margins.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "scale/subset_sums.hpp"
#include "threads.hpp"

#if defined(__GNUC__) || defined(__clang__)
#define A1GM_INLINE __attribute__((always_inline)) inline
#if defined(__x86_64__)
#define A1GM_AVX2 1
#endif
#else
#define A1GM_INLINE inline
#endif

namespace a1gm {
namespace {

constexpr int64_t kCellsWorthAThread = 1 << 21;
// Columns are taken in groups of four, or of eight where there are rows enough for the
// larger tables of their sums, and columns few enough for a cache that holds them.
constexpr int64_t kRowsWorthEight = 4096, kColsWorthEight = 96;

// Four numbers in a vector register; elsewhere, four numbers.
#if defined(__GNUC__) || defined(__clang__)
typedef double Quad __attribute__((vector_size(32), aligned(8)));
A1GM_INLINE void set_ratio(Quad& out, const Quad& a, const Quad& b) {
  const Quad none = {0.0, 0.0, 0.0, 0.0};
  out = a > none ? a / b : none;
}
A1GM_INLINE double& part(Quad& v, int k) { return reinterpret_cast<double*>(&v)[k]; }
#else
struct Quad {
  double v[4];
  Quad& operator+=(const Quad& o) {
    for (int k = 0; k < 4; ++k) v[k] += o.v[k];
    return *this;
  }
  Quad operator*(double x) const { return {{v[0] * x, v[1] * x, v[2] * x, v[3] * x}}; }
  Quad operator+(const Quad& o) const {
    Quad sum = *this;
    return sum += o;
  }
};
inline void set_ratio(Quad& out, const Quad& a, const Quad& b) {
  for (int k = 0; k < 4; ++k) out.v[k] = a.v[k] > 0.0 ? a.v[k] / b.v[k] : 0.0;
}
inline double& part(Quad& v, int k) { return v.v[k]; }
#endif

// One number for each problem of a bundle of 4 * Q.
template <int Q>
struct Lanes {
  Quad q[Q];
  A1GM_INLINE Lanes& operator+=(const Lanes& o) {
    for (int k = 0; k < Q; ++k) q[k] += o.q[k];
    return *this;
  }
  double& at(int l) { return part(q[l / 4], l % 4); }
};

// Lanes that begin with a line of the cache: a vector that straddles two lines is slow to
// store and to load again.
template <int Q>
class Row {
 public:
  explicit Row(size_t n) : n_(n), memory_(new char[n * sizeof(Lanes<Q>) + kLine]) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.get());
    at_ = reinterpret_cast<Lanes<Q>*>(memory_.get() + (kLine - address % kLine) % kLine);
    clear();
  }
  void clear() { std::fill_n(at_, n_, Lanes<Q>{}); }
  size_t size() const { return n_; }
  Lanes<Q>* data() { return at_; }
  Lanes<Q>& operator[](size_t j) { return at_[j]; }

 private:
  static constexpr size_t kLine = 64;
  size_t n_;
  std::unique_ptr<char[]> memory_;
  Lanes<Q>* at_;
};

// One thread's part of a sweep: w = R / (P h), added to the choices of its rows.
template <int Q, int kGroup>
A1GM_INLINE void sweep(const BitMask& mask, const ManyMargins& margins, int64_t begin,
                       int64_t end, const Lanes<Q>* all_coef, const Lanes<Q>* reads,
                       Lanes<Q>* adds) {
  constexpr int64_t kPerWord = 64 / kGroup;
  constexpr uint64_t kAll = (uint64_t{1} << kGroup) - 1;
  const int64_t n_groups = (mask.m + kGroup - 1) / kGroup;
  for (int64_t i = begin; i < end; ++i) {
    const uint64_t* const bits = mask.bits + i * mask.words;
    Lanes<Q> t{};
    for (int64_t w = 0; w < mask.words; ++w) {
      uint64_t word = bits[w];
      const Lanes<Q>* from = reads + (w * kPerWord << kGroup);
      if (word == 0) continue;
      const int64_t n = std::min(kPerWord, n_groups - w * kPerWord);
      for (int64_t g = 0; g < n; ++g, word >>= kGroup) t += from[(g << kGroup) + (word & kAll)];
    }
    const Lanes<Q>* coef = all_coef + (i < margins.second ? 0 : 2);
    const double one = margins.sums[2 * i], two = margins.sums[2 * i + 1];
    Lanes<Q> v;
    for (int k = 0; k < Q; ++k)
      set_ratio(v.q[k], coef[0].q[k] * one + coef[1].q[k] * two, t.q[k]);
    for (int64_t w = 0; w < mask.words; ++w) {
      uint64_t word = bits[w];
      Lanes<Q>* to = adds + (w * kPerWord << kGroup);
      if (word == 0) continue;
      const int64_t n = std::min(kPerWord, n_groups - w * kPerWord);
      for (int64_t g = 0; g < n; ++g, word >>= kGroup) to[(g << kGroup) + (word & kAll)] += v;
    }
  }
}

template <int Q, int kGroup>
using Sweep = void (*)(const BitMask&, const ManyMargins&, int64_t, int64_t,
                       const Lanes<Q>*, const Lanes<Q>*, Lanes<Q>*);

template <int Q, int kGroup>
void sweep_plain(const BitMask& mask, const ManyMargins& margins, int64_t begin,
                 int64_t end, const Lanes<Q>* coef, const Lanes<Q>* reads,
                 Lanes<Q>* adds) {
  sweep<Q, kGroup>(mask, margins, begin, end, coef, reads, adds);
}

#ifdef A1GM_AVX2
template <int Q, int kGroup>
__attribute__((target("avx2"))) void sweep_avx2(
    const BitMask& mask, const ManyMargins& margins, int64_t begin, int64_t end,
    const Lanes<Q>* coef, const Lanes<Q>* reads, Lanes<Q>* adds) {
  sweep<Q, kGroup>(mask, margins, begin, end, coef, reads, adds);
}
#endif

template <int Q, int kGroup>
Sweep<Q, kGroup> choose_sweep() {
#ifdef A1GM_AVX2
  if (__builtin_cpu_supports("avx2")) return sweep_avx2<Q, kGroup>;
#endif
  return sweep_plain<Q, kGroup>;
}

// Problems first ... of one bundle, from the start in h to the result there.
template <int Q, int kGroup>
class Bundle {
 public:
  Bundle(const BitMask& mask, const ManyMargins& margins, const double* C,
         int64_t n_problems, int64_t first, double* h, int threads)
      : mask_(mask),
        margins_(margins),
        n_(std::min<int64_t>(4 * Q, n_problems - first)),
        to_(h + first * mask.m),
        C_(static_cast<size_t>(mask.m)),
        h_(C_.size()),
        sums_(C_.size()),
        reads_(groups_of(C_.size(), kGroup) << kGroup) {
    for (int t = 0; t < threads; ++t) adds_.emplace_back(reads_.size());
    for (int l = 0; l < 4 * Q; ++l) {  // lanes past the last problem repeat it
      const int64_t p = first + std::min<int64_t>(l, n_ - 1);
      for (int k = 0; k < 4; ++k) coef_[k].at(l) = margins.coef[k * n_problems + p];
      for (size_t j = 0; j < h_.size(); ++j) {
        C_[j].at(l) = C[static_cast<size_t>(p) * h_.size() + j];
        h_[j].at(l) = C_[j].at(l) == 0.0 ? 0.0 : h[static_cast<size_t>(p) * h_.size() + j];
      }
    }
  }

  // Sweeps until all are within tol, or surely will be after the step that is taken
  // last. Writes the factors, and the mismatch that is left of each.
  void solve(double tol, int64_t max_sweeps, double* gap) {
    Lanes<Q> before{};
    for (int64_t k = 1;; ++k) {
      sweep_rows();
      Lanes<Q> found = mismatch();
      bool done = true, nearly = k > 1;
      for (int l = 0; l < 4 * Q; ++l) {
        const double g = found.at(l), rate = g / before.at(l);
        const bool hopeless = std::isnan(g);  // does not get better
        done &= g <= tol || hopeless;
        nearly &= hopeless || (rate < 0.5 && g * rate <= 0.5 * tol);
      }
      const bool last = done || nearly || k >= max_sweeps;
      if (last && !(nearly && !done)) return write(found, gap);
      step();
      if (last) {
        for (int l = 0; l < 4 * Q; ++l) found.at(l) *= found.at(l) / before.at(l);
        return write(found, gap);
      }
      before = found;
    }
  }

 private:
  void sweep_rows() {
    static const Sweep<Q, kGroup> sweep_some = choose_sweep<Q, kGroup>();
    const auto threads = static_cast<int64_t>(adds_.size());
    fill_choices<kGroup>(h_.data(), h_.size(), reads_.data());
    run_on_threads(static_cast<int>(threads), [&](int t) {
      Row<Q>& adds = adds_[static_cast<size_t>(t)];
      adds.clear();
      sweep_some(mask_, margins_, mask_.n * t / threads, mask_.n * (t + 1) / threads,
                 coef_, reads_.data(), adds.data());
    });
    sums_.clear();
    for (Row<Q>& adds : adds_) share_out<kGroup>(adds.data(), sums_.data(), sums_.size());
  }

  // The largest relative mismatch of a column margin.
  Lanes<Q> mismatch() {
    Lanes<Q> gap{};
    for (size_t j = 0; j < h_.size(); ++j)
      for (int l = 0; l < 4 * Q; ++l) {
        const double C = C_[j].at(l);
        if (C == 0.0) continue;
        const double off = std::abs(h_[j].at(l) * sums_[j].at(l) - C) / C;
        if (!(off <= gap.at(l))) gap.at(l) = off;  // NaN, too, and for good
      }
    return gap;
  }

  void step() {
    for (size_t j = 0; j < h_.size(); ++j)
      for (int l = 0; l < 4 * Q; ++l)
        if (C_[j].at(l) != 0.0) h_[j].at(l) = C_[j].at(l) / sums_[j].at(l);
  }

  void write(Lanes<Q>& found, double* gap) {
    for (int l = 0; l < n_; ++l) {
      const double g = found.at(l);
      gap[l] = std::isnan(g) ? std::numeric_limits<double>::infinity() : g;
      for (size_t j = 0; j < h_.size(); ++j)
        to_[static_cast<size_t>(l) * h_.size() + j] = h_[j].at(l);
    }
  }

  const BitMask& mask_;
  const ManyMargins& margins_;
  int64_t n_;
  double* to_;
  Row<Q> C_, h_, sums_, reads_;
  std::vector<Row<Q>> adds_;
  Lanes<Q> coef_[4];
};

}  // namespace

void scale_together(const BitMask& mask, const ManyMargins& margins, const double* C,
                    int64_t n_problems, double* h, double* gap, double tol,
                    int64_t max_sweeps, int n_threads) {
  const int threads = useful_threads(n_threads, mask.n * mask.m, kCellsWorthAThread);
  const bool by_eight = mask.n >= kRowsWorthEight && mask.m <= kColsWorthEight;
  for (int64_t first = 0; first < n_problems;) {
    const auto solve = [&](auto quads, auto group) {
      Bundle<quads, group> bundle(mask, margins, C, n_problems, first, h, threads);
      bundle.solve(tol, max_sweeps, gap + first);
      first += 4 * quads;
    };
    const auto solve_quads = [&](auto quads) {
      if (by_eight)
        solve(quads, std::integral_constant<int, 8>{});
      else
        solve(quads, std::integral_constant<int, 4>{});
    };
    // The last few problems have a bundle of their size.
    const int64_t left = (n_problems - first + 3) / 4;
    if (left >= 4)
      solve_quads(std::integral_constant<int, 4>{});
    else if (left >= 2)
      solve_quads(std::integral_constant<int, 2>{});
    else
      solve_quads(std::integral_constant<int, 1>{});
  }
}

}  // namespace a1gm
