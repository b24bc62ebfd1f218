#include "together.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

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

constexpr int kLanes = 16;  // problems side by side: their row sums fit registers
constexpr double kCancellation = 1e-6;  // a smaller remainder of a sum is not trusted

// Four numbers in a vector register; elsewhere, four numbers.
#if defined(__GNUC__) || defined(__clang__)
typedef double Quad __attribute__((vector_size(32), aligned(8)));
A1GM_INLINE void set_ratio(Quad& out, const Quad& a, const Quad& b) {
  const Quad none = {0.0, 0.0, 0.0, 0.0};
  out = a > none ? a / b : none;
}
A1GM_INLINE double& part(Quad& v, int k) { return reinterpret_cast<double*>(&v)[k]; }
// Whether each of a's numbers is above b's; a comparison gives all bits, or none.
A1GM_INLINE bool all_above(const Quad* a, const Quad* b, int n) {
  auto above = a[0] > b[0];
  for (int k = 1; k < n; ++k) above &= a[k] > b[k];
  return (above[0] & above[1] & above[2] & above[3]) != 0;
}
#else
struct Quad {
  double v[4];
  Quad& operator+=(const Quad& o) {
    for (int k = 0; k < 4; ++k) v[k] += o.v[k];
    return *this;
  }
  Quad& operator-=(const Quad& o) {
    for (int k = 0; k < 4; ++k) v[k] -= o.v[k];
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
inline bool all_above(const Quad* a, const Quad* b, int n) {
  for (int k = 0; k < n; ++k)
    for (int l = 0; l < 4; ++l)
      if (!(a[k].v[l] > b[k].v[l])) return false;
  return true;
}
#endif

struct Lanes {
  Quad q[kLanes / 4];
  A1GM_INLINE void add(const Lanes& o) {
    for (int k = 0; k < kLanes / 4; ++k) q[k] += o.q[k];
  }
  A1GM_INLINE void subtract(const Lanes& o) {
    for (int k = 0; k < kLanes / 4; ++k) q[k] -= o.q[k];
  }
  double& at(int l) { return part(q[l / 4], l % 4); }
};

// Some problems side by side, column by column.
struct Bundle {
  std::vector<Lanes> C, h, sums;
  Lanes coef[4];
};

// The sum of h over the observed cells of a row whose missing ones are listed.
Lanes sum_of_unlisted(const Lines& rows, int64_t i, const std::vector<Lanes>& h) {
  Lanes t{};
  int32_t next = 0;
  for (int64_t k = rows.ptr[i]; k <= rows.ptr[i + 1]; ++k) {
    const int32_t stop = k < rows.ptr[i + 1] ? rows.index[k]
                                             : static_cast<int32_t>(rows.n_other);
    for (; next < stop; ++next) t.add(h[static_cast<size_t>(next)]);
    next = stop + 1;
  }
  return t;
}

// One sweep over all rows: the sums P' w of the columns for w = R / (P h).
A1GM_INLINE void sweep(const Lines& rows, const ManyMargins& margins, Bundle& b) {
  const size_t m = b.h.size();
  Lanes total{}, all{};
  for (size_t j = 0; j < m; ++j) {
    b.sums[j] = Lanes{};
    total.add(b.h[j]);
  }
  const bool missing = rows.lists_missing;
  Lanes trusted;  // a smaller remainder of the total is not
  for (int k = 0; k < kLanes / 4; ++k) trusted.q[k] = total.q[k] * kCancellation;
  const int32_t* const index = rows.index.data();
  const int64_t* const ptr = rows.ptr.data();
  const Lanes* const h = b.h.data();
  Lanes* const sums = b.sums.data();
  for (int64_t i = 0; i < rows.n; ++i) {
    const int32_t* const from = index + ptr[i];
    const int32_t* const to = index + ptr[i + 1];
    Lanes t{};
    if (missing) {
      t = total;
      for (const int32_t* k = from; k != to; ++k) t.subtract(h[*k]);
      if (!all_above(t.q, trusted.q, kLanes / 4)) t = sum_of_unlisted(rows, i, b.h);
    } else {
      for (const int32_t* k = from; k != to; ++k) t.add(h[*k]);
    }
    const Lanes* coef = b.coef + (i < margins.second ? 0 : 2);
    const double one = margins.sums[2 * i], two = margins.sums[2 * i + 1];
    Lanes w;
    for (int k = 0; k < kLanes / 4; ++k)
      set_ratio(w.q[k], coef[0].q[k] * one + coef[1].q[k] * two, t.q[k]);
    all.add(w);
    for (const int32_t* k = from; k != to; ++k) sums[*k].add(w);
  }
  if (!missing) return;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (size_t j = 0; j < m; ++j)
    for (int l = 0; l < kLanes; ++l) {
      const double left = all.at(l) - sums[j].at(l);
      sums[j].at(l) = left > kCancellation * all.at(l) ? left : nan;
    }
}

#ifdef A1GM_AVX2
__attribute__((target("avx2"))) void sweep_avx2(const Lines& rows,
                                                const ManyMargins& margins, Bundle& b) {
  sweep(rows, margins, b);
}
#endif

void sweep_plain(const Lines& rows, const ManyMargins& margins, Bundle& b) {
  sweep(rows, margins, b);
}

using Sweep = void (*)(const Lines&, const ManyMargins&, Bundle&);

Sweep choose_sweep() {
#ifdef A1GM_AVX2
  if (__builtin_cpu_supports("avx2")) return sweep_avx2;
#endif
  return sweep_plain;
}

// The largest relative mismatch of a column margin, and the next h.
Lanes mismatch(Bundle& b) {
  Lanes gap{};
  for (size_t j = 0; j < b.h.size(); ++j)
    for (int l = 0; l < kLanes; ++l) {
      const double C = b.C[j].at(l), sum = b.sums[j].at(l);
      if (C == 0.0) {
        b.h[j].at(l) = 0.0;
        continue;
      }
      const double off = std::abs(b.h[j].at(l) * sum - C) / C;
      if (!(off <= gap.at(l))) gap.at(l) = off;  // NaN, too, and for good
    }
  return gap;
}

void next_factors(Bundle& b) {
  for (size_t j = 0; j < b.h.size(); ++j)
    for (int l = 0; l < kLanes; ++l)
      if (b.C[j].at(l) != 0.0) b.h[j].at(l) = b.C[j].at(l) / b.sums[j].at(l);
}

}  // namespace

void scale_together(const Lines& rows, const ManyMargins& margins, const double* C,
                    int64_t n_problems, double* h, double* gap, double tol,
                    int64_t max_sweeps, int n_threads) {
  static const Sweep sweep_once = choose_sweep();
  const auto m = static_cast<size_t>(rows.n_other);
  const int64_t n_bundles = (n_problems + kLanes - 1) / kLanes;
  auto solve_bundle = [&](int64_t first) {
    // Lanes past the last problem repeat it.
    const auto problem = [&](int l) { return std::min(first + l, n_problems - 1); };
    Bundle b{std::vector<Lanes>(m), std::vector<Lanes>(m), std::vector<Lanes>(m), {}};
    for (int l = 0; l < kLanes; ++l) {
      for (int k = 0; k < 4; ++k)
        b.coef[k].at(l) = margins.coef[k * n_problems + problem(l)];
      for (size_t j = 0; j < m; ++j) {
        b.C[j].at(l) = C[static_cast<size_t>(problem(l)) * m + j];
        b.h[j].at(l) = h[static_cast<size_t>(problem(l)) * m + j];
      }
    }
    for (int64_t k = 1;; ++k) {
      sweep_once(rows, margins, b);
      Lanes found = mismatch(b);
      bool done = true;  // NaN does not get better
      for (int l = 0; l < kLanes; ++l) done &= found.at(l) <= tol || std::isnan(found.at(l));
      if (done || k >= max_sweeps) {
        for (int l = 0; l < kLanes && first + l < n_problems; ++l) {
          gap[first + l] =
              std::isnan(found.at(l)) ? std::numeric_limits<double>::infinity() : found.at(l);
          for (size_t j = 0; j < m; ++j) h[static_cast<size_t>(first + l) * m + j] = b.h[j].at(l);
        }
        return;
      }
      next_factors(b);
    }
  };
  const int threads = static_cast<int>(std::clamp<int64_t>(n_threads, 1, n_bundles));
  run_on_threads(threads, [&](int t) {
    for (int64_t bundle = t; bundle < n_bundles; bundle += threads)
      solve_bundle(bundle * kLanes);
  });
}

}  // namespace a1gm
