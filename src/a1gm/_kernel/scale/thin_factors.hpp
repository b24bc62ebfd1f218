// An approximate factorisation of a graph's Laplacian that never fills in.
//
// To eliminate a node exactly is to join all its neighbours to each other. Here each
// neighbour is joined to one of the heavier ones, drawn by their conductances, so that
// the graph stays the same on average (Kyng & Sachdeva 2016; Gao, Kyng & Spielman
// 2023). It precedes conjugate gradients on lattices, chains and expanders alike.
// Nothing is subtracted, so thin edges keep their digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace a1gm {

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
  int32_t next_node();

  std::vector<uint8_t> is_ground_;
  std::vector<Half> halves_;  // the two ends of an edge lie side by side
  std::vector<int32_t> head_, degree_, place_;
  std::vector<std::vector<int32_t>> waiting_;  // by degree; entries may be stale
  size_t lowest_ = 0;
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

}  // namespace a1gm
