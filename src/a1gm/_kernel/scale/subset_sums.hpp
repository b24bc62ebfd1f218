// Columns in small groups: what belongs to every choice that a row can make of them.
#pragma once

#include <cstddef>

namespace a1gm {

// Places of a group: one for each choice, and a line of the cache to spare. Groups of a
// power of two would have their same choices compete for a few lines of the cache.
constexpr size_t places_of(int group) { return (size_t{1} << group) + 8; }

constexpr size_t groups_of(size_t n_cols, int group) {
  return (n_cols + static_cast<size_t>(group) - 1) / static_cast<size_t>(group);
}

// The sums of h over every choice of the columns of a group: a row then needs one of
// them per group instead of a cell at a time.
template <int kGroup, typename T>
void fill_choices(const T* h, size_t n_cols, T* sums) {
  for (size_t g = 0; g < groups_of(n_cols, kGroup); ++g, sums += places_of(kGroup)) {
    sums[0] = T{};
    for (size_t bit = 0; bit < kGroup; ++bit) {
      const size_t j = g * kGroup + bit, half = size_t{1} << bit;
      const T own = j < n_cols ? h[j] : T{};
      for (size_t c = 0; c < half; ++c) {
        sums[half + c] = sums[c];
        sums[half + c] += own;
      }
    }
  }
}

// The other way round: what rows have added to the choices they make goes to the
// columns of these choices. Leaves the choices useless.
template <int kGroup, typename T>
void share_out(T* collected, T* columns, size_t n_cols) {
  for (size_t g = 0; g < groups_of(n_cols, kGroup); ++g, collected += places_of(kGroup))
    for (size_t bit = kGroup; bit-- > 0;) {
      const size_t j = g * kGroup + bit, half = size_t{1} << bit;
      for (size_t c = 0; c < half; ++c) {
        if (j < n_cols) columns[j] += collected[half + c];
        collected[c] += collected[half + c];
      }
    }
}

}  // namespace a1gm
