// The columns of a core as a network whose conductances are the fitted cells.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reduce/peel.hpp"
#include "scale/thin_factors.hpp"

namespace a1gm {

// When potentials are good enough: no column of sum c may miss its current by more than
// c times `least`, or `share` of the range of the potentials.
struct Enough {
  double least, share;
};

// In products with the Laplacian: thin factors with their use, and one product that they
// precede.
struct Costs {
  int64_t factors, preceded;
};

class Flow {
 public:
  // Factors of a core whose rows are fitted exactly.
  Flow(const Reduced& core, const double* w, const double* h, int n_threads = 1);
  void move(const double* w, const double* h);

  // Potentials x of currents y that leave at the heaviest column of each block, by
  // conjugate gradients; `extra` joins columns to the ground, null = nothing. Thin
  // factors are made when as much was spent without them, or with old ones, as they
  // cost; they are kept. Returns the products taken.
  int64_t solve(const double* y, const double* extra, Enough enough, Costs costs,
                int64_t max_products, double* x);

  // Bounds the potential that a current of a column's own sum can cause: by the maximum
  // principle any x with S x >= k c > 0 off the ground bounds it by max x / k. Infinite
  // where so few products find none.
  double reach(double enough, int64_t max_products);

 private:
  void times(const double* x, const double* extra, double* y);
  void precede(const double* residual, const double* extra, double* out);
  void factorise(const double* extra);

  const Reduced& core_;
  int n_threads_;
  std::vector<double> d_, h_, w_, fitted_, scaled_, all_;
  std::vector<uint8_t> is_ground_;  // of columns
  std::unique_ptr<ThinFactors> factors_;
  std::vector<int32_t> place_;  // of columns in them
  bool is_fresh_ = false;   // the factors are of these very conductances
};

}  // namespace a1gm
