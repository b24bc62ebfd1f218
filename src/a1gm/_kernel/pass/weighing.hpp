// The rows of a thread times their weights, and patterns of proportional weights.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pass/observe.hpp"
#include "pass/tile.hpp"
#include "pass/weigh.hpp"
#include "read/table_part.hpp"

namespace a1gm {

class Weighing {
 public:
  Weighing(const std::vector<Part>& parts, const Options& options, int64_t n_cols,
           int64_t words, int64_t tile_rows)
      : m_(n_cols),
        words_(words),
        is_exposure_(options.is_exposure),
        x_(parts, n_cols, tile_rows),
        weights_(*options.weights, n_cols, tile_rows),
        shape_(static_cast<size_t>(n_cols)),
        by_holes_(size_t{1} << (64 - kHolesShift), -1) {}

  WeightRange range;
  std::vector<double> pattern_weights;  // of the first row of each pattern

  // Writes the cells of some rows, times their weights unless these are exposures.
  void weigh_rows(int64_t row, int64_t rows, double* out) {
    const double* const x = x_.rows(row, rows);
    v_ = weights_.rows(row, rows);
    cells_ = out;
    const bool is_flat = x_.stride() == m_ && weights_.stride() == m_;
    for (int64_t i = 0; i < (is_flat ? 1 : rows); ++i)
      weigh(x + i * x_.stride(), v_ + i * weights_.stride(), is_flat ? rows * m_ : m_,
            is_exposure_, out + i * m_, range);
  }

  // The pattern of the tile's row i, and its largest weight: the pattern of the last row
  // with the same holes, where weights are proportional; else `number_of` its shape.
  template <typename F>
  int32_t number(int64_t i, const uint64_t* key, double& largest, F&& number_of) {
    const double* const cells = cells_ + i * m_;
    const double* const own = v_ + i * weights_.stride();
    uint64_t holes = 0;
    for (int64_t w = 0; w < words_; ++w) holes = (holes + key[w]) * kKeyMix;
    int32_t& id = by_holes_[holes >> kHolesShift];
    const bool is_near = range.least * kNearEnough > 1.0 && range.most < kNearEnough;
    const auto is_like = [&](int32_t k) {
      return are_proportional(cells, own, m_, &pattern_weights[k * m_], largest_at_[k]);
    };
    if (is_near && id >= 0 && is_like(id)) {
      largest = own[largest_at_[id]];
      return id;
    }
    for (bool exact = !is_near;; exact = true) {
      largest = shape_of(cells, own, m_, exact, shape_.data());
      id = number_of(shape_.data());
      if (id == static_cast<int32_t>(largest_at_.size())) break;
      if (exact || is_like(id)) return id;
    }
    for (int64_t j = 0; j < m_; ++j)
      pattern_weights.push_back(shape_[j] != 0 ? own[j] : 0.0);
    const auto weights = pattern_weights.end() - m_;
    largest_at_.push_back(std::max_element(weights, weights + m_) - weights);
    return id;
  }

 private:
  static constexpr int kHolesShift = 54;  // a thousand places
  int64_t m_, words_;
  bool is_exposure_;
  TileReader x_, weights_;
  const double *v_ = nullptr, *cells_ = nullptr;  // of the tile
  std::vector<uint64_t> shape_;
  std::vector<int32_t> by_holes_;
  std::vector<int64_t> largest_at_;  // of each pattern: where its largest weight is
};

}  // namespace a1gm
