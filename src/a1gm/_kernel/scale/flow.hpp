// The columns of a core as a network whose conductances are the fitted cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "scale/cell_error.hpp"

namespace a1gm {

// An approximate factorisation of a graph's Laplacian that never fills in.
//
// To eliminate a node exactly is to join all its neighbours to each other. Here each
// neighbour is joined to one of the heavier ones, drawn by their conductances, so that
// the graph stays the same on average (Kyng & Sachdeva 2016; Gao, Kyng & Spielman
// 2023). It precedes conjugate gradients on lattices, chains and expanders alike.
// Nothing is subtracted, so thin edges keep their digits.
class ThinFactors {
 public:
  // Edges are joined first, then all nodes eliminated but the grounds, whose potential
  // is 0.
  ThinFactors(std::vector<uint8_t>&& is_ground, int64_t n_edges);
  void join(int64_t a, int64_t b, double conductance);
  void eliminate();

  // Potentials in place of currents. Nodes are at their places, which eliminate() has
  // put in the order of elimination.
  void solve(double* y) const;
  int32_t place(int64_t node) const { return place_[static_cast<size_t>(node)]; }

 private:
  struct Half {  // one end of an edge, in the list of that end
    double conductance;  // 0: gone
    int32_t node;        // at the other end
    int32_t next;        // of the same list
  };
  struct Neighbour {
    double conductance;
    int32_t node, half;
  };
  void gather(int32_t node);
  void thin_out(int32_t node);
  void enqueue(int32_t node);

  std::vector<uint8_t> is_ground_;
  std::vector<Half> halves_;  // the two ends of an edge lie side by side
  std::vector<int32_t> head_, degree_, place_;
  DegreeQueue queue_;
  std::vector<Neighbour> found_;
  std::vector<double> sums_;
  uint64_t drawn_ = 0;

  struct Entry {
    int32_t to;   // a neighbour that is eliminated later; the heaviest is the last
    float share;  // of what is left at the node, that goes there
  };
  std::vector<int32_t> order_;  // of elimination
  std::vector<int64_t> ptr_{0};
  std::vector<Entry> entries_;
  std::vector<double> pivot_;
};

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
