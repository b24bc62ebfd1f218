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

constexpr int kMostQuads = 4;  // 16 problems side by side: their row sums fit registers
constexpr double kCancellation = 1e-6;  // a smaller remainder of a sum is not trusted
constexpr int64_t kCellsPerThread = 1 << 18;

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

// One number for each problem of a bundle of 4 * Q.
template <int Q>
struct Lanes {
  Quad q[Q];
  A1GM_INLINE void add(const Lanes& o) {
    for (int k = 0; k < Q; ++k) q[k] += o.q[k];
  }
  A1GM_INLINE void subtract(const Lanes& o) {
    for (int k = 0; k < Q; ++k) q[k] -= o.q[k];
  }
  double& at(int l) { return part(q[l / 4], l % 4); }
};

// The sum of h over the observed cells of a row whose missing ones are listed.
template <int Q>
Lanes<Q> sum_of_unlisted(const Lines& rows, int64_t i, const Lanes<Q>* h) {
  Lanes<Q> t{};
  int32_t next = 0;
  for (int64_t k = rows.ptr[i]; k <= rows.ptr[i + 1]; ++k) {
    const int32_t stop = k < rows.ptr[i + 1] ? rows.index[k]
                                             : static_cast<int32_t>(rows.n_other);
    for (; next < stop; ++next) t.add(h[next]);
    next = stop + 1;
  }
  return t;
}

// What a sweep over some rows reads, and the sums P' w it adds up for w = R / (P h):
// of the listed columns, and of all.
template <int Q>
struct Share {
  const Lanes<Q>* h;
  const Lanes<Q>* coef;
  std::vector<Lanes<Q>> sums;
  Lanes<Q> all;
};

template <int Q>
A1GM_INLINE void sweep(const Lines& rows, const ManyMargins& margins, int64_t begin,
                       int64_t end, Share<Q>& share) {
  Lanes<Q> total{}, all{}, trusted{};  // a smaller remainder of the total is not
  for (int64_t j = 0; j < rows.n_other; ++j) total.add(share.h[j]);
  for (int k = 0; k < Q; ++k) trusted.q[k] = total.q[k] * kCancellation;
  const bool missing = rows.lists_missing;
  const int32_t* const index = rows.index.data();
  const int64_t* const ptr = rows.ptr.data();
  const Lanes<Q>* const h = share.h;
  Lanes<Q>* const sums = share.sums.data();
  for (int64_t i = begin; i < end; ++i) {
    const int32_t* const from = index + ptr[i];
    const int32_t* const to = index + ptr[i + 1];
    Lanes<Q> t{};
    if (missing) {
      t = total;
      for (const int32_t* k = from; k != to; ++k) t.subtract(h[*k]);
      if (!all_above(t.q, trusted.q, Q)) t = sum_of_unlisted(rows, i, h);
    } else {
      for (const int32_t* k = from; k != to; ++k) t.add(h[*k]);
    }
    const Lanes<Q>* coef = share.coef + (i < margins.second ? 0 : 2);
    const double one = margins.sums[2 * i], two = margins.sums[2 * i + 1];
    Lanes<Q> w;
    for (int k = 0; k < Q; ++k)
      set_ratio(w.q[k], coef[0].q[k] * one + coef[1].q[k] * two, t.q[k]);
    all.add(w);
    for (const int32_t* k = from; k != to; ++k) sums[*k].add(w);
  }
  share.all = all;
}

template <int Q>
void sweep_plain(const Lines& rows, const ManyMargins& margins, int64_t begin,
                 int64_t end, Share<Q>& share) {
  sweep(rows, margins, begin, end, share);
}

#ifdef A1GM_AVX2
template <int Q>
__attribute__((target("avx2"))) void sweep_avx2(const Lines& rows,
                                                const ManyMargins& margins,
                                                int64_t begin, int64_t end,
                                                Share<Q>& share) {
  sweep(rows, margins, begin, end, share);
}
#endif

template <int Q>
auto choose_sweep() {
#ifdef A1GM_AVX2
  if (__builtin_cpu_supports("avx2")) return sweep_avx2<Q>;
#endif
  return sweep_plain<Q>;
}

// Problems first ... of one bundle, from the start in h to the result there.
template <int Q>
class Bundle {
 public:
  Bundle(const Lines& rows, const ManyMargins& margins, const double* C,
         int64_t n_problems, int64_t first, double* h, int threads)
      : rows_(rows),
        margins_(margins),
        n_(std::min<int64_t>(4 * Q, n_problems - first)),
        to_(h + first * rows.n_other),
        C_(static_cast<size_t>(rows.n_other)),
        h_(C_.size()),
        sums_(C_.size()),
        shares_(static_cast<size_t>(threads)) {
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
    static const auto sweep_some = choose_sweep<Q>();
    const auto threads = static_cast<int64_t>(shares_.size());
    run_on_threads(static_cast<int>(threads), [&](int t) {
      Share<Q>& share = shares_[static_cast<size_t>(t)];
      share.h = h_.data();
      share.coef = coef_;
      share.sums.assign(h_.size(), Lanes<Q>{});
      sweep_some(rows_, margins_, rows_.n * t / threads, rows_.n * (t + 1) / threads,
                 share);
    });
    Lanes<Q> all{};
    for (Share<Q>& share : shares_) all.add(share.all);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (size_t j = 0; j < h_.size(); ++j) {
      sums_[j] = Lanes<Q>{};
      for (Share<Q>& share : shares_) sums_[j].add(share.sums[j]);
      if (!rows_.lists_missing) continue;
      for (int l = 0; l < 4 * Q; ++l) {
        const double left = all.at(l) - sums_[j].at(l);
        sums_[j].at(l) = left > kCancellation * all.at(l) ? left : nan;
      }
    }
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

  const Lines& rows_;
  const ManyMargins& margins_;
  int64_t n_;
  double* to_;
  std::vector<Lanes<Q>> C_, h_, sums_;
  std::vector<Share<Q>> shares_;
  Lanes<Q> coef_[4];
};

}  // namespace

void scale_together(const Lines& rows, const ManyMargins& margins, const double* C,
                    int64_t n_problems, double* h, double* gap, double tol,
                    int64_t max_sweeps, int n_threads) {
  const int64_t useful = rows.n * rows.n_other / kCellsPerThread;
  const int threads = static_cast<int>(
      std::clamp<int64_t>(n_threads, 1, std::max<int64_t>(1, useful)));
  const auto solve = [&](auto bundle, int64_t first) {
    bundle.solve(tol, max_sweeps, gap + first);
  };
  for (int64_t first = 0; first < n_problems; first += 4 * kMostQuads) {
    const int64_t quads = (n_problems - first + 3) / 4;
    const auto& m = margins;
    if (quads == 1)
      solve(Bundle<1>(rows, m, C, n_problems, first, h, threads), first);
    else if (quads == 2)
      solve(Bundle<2>(rows, m, C, n_problems, first, h, threads), first);
    else if (quads == 3)
      solve(Bundle<3>(rows, m, C, n_problems, first, h, threads), first);
    else
      solve(Bundle<kMostQuads>(rows, m, C, n_problems, first, h, threads), first);
  }
}

}  // namespace a1gm
