#include "reduce/mask_lists.hpp"

#include <algorithm>
#include <numeric>

namespace a1gm {

int32_t Lists::first_observed(int64_t i) const {
  if (!lists_missing) return length(i) ? index[ptr[i]] : -1;
  int32_t next = 0;
  for (int64_t k = ptr[i]; k < ptr[i + 1] && index[k] == next; ++k) ++next;
  return next < n_other ? next : -1;
}

Lists transpose(const Lists& lists) {
  Lists out;
  out.n = lists.n_other;
  out.n_other = lists.n;
  out.lists_missing = lists.lists_missing;
  out.ptr.assign(static_cast<size_t>(out.n + 1), 0);
  for (const int32_t j : lists.index) ++out.ptr[j + 1];
  std::partial_sum(out.ptr.begin(), out.ptr.end(), out.ptr.begin());
  out.index.resize(lists.index.size());
  out.weight.resize(lists.weight.size());
  std::vector<int64_t> next(out.ptr.begin(), out.ptr.end() - 1);
  for (int64_t i = 0; i < lists.n; ++i)
    for (int64_t k = lists.ptr[i]; k < lists.ptr[i + 1]; ++k) {
      const int64_t to = next[lists.index[k]]++;
      out.index[to] = static_cast<int32_t>(i);
      if (!lists.weight.empty()) out.weight[to] = lists.weight[k];
    }
  return out;
}

// Bits that are listed at once, also where there are fewer, which the next ones then
// overwrite: how many there are in a word cannot be guessed.
constexpr int kAtOnce = 8;
constexpr uint64_t kTop = uint64_t{1} << 63;  // the result where no bit is left

Lists lists_of_bits(const BitMask& mask) {
  const auto [bits, n, m, words] = mask;
  Lists out;
  out.n = n;
  out.n_other = m;
  int64_t observed = 0;
  for (int64_t k = 0; k < n * words; ++k) observed += count_bits(bits[k]);
  out.lists_missing = observed * 2 > n * m;
  const uint64_t flip = out.lists_missing ? ~uint64_t{0} : 0;
  const int64_t tail = m & 63;
  const uint64_t tail_mask = tail ? (uint64_t{1} << tail) - 1 : ~uint64_t{0};
  const int64_t listed = out.lists_missing ? n * m - observed : observed;
  out.ptr.resize(static_cast<size_t>(n + 1));
  out.index.resize(static_cast<size_t>(listed + kAtOnce));
  int32_t* const index = out.index.data();
  int64_t at = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t w = 0; w < words; ++w) {
      uint64_t word = bits[i * words + w] ^ flip;
      if (w == words - 1) word &= tail_mask;
      if (word == 0) continue;
      const int64_t next = at + count_bits(word);
      do {
        for (int k = 0; k < kAtOnce; ++k, word &= word - 1)
          index[at + k] = static_cast<int32_t>(w * 64 + lowest_bit(word | kTop));
        at += kAtOnce;
      } while (at < next);
      at = next;
    }
    out.ptr[i + 1] = at;
  }
  out.index.resize(static_cast<size_t>(listed));
  return out;
}

void list_other_kind(Lists& lists) {
  const auto listed = static_cast<int64_t>(lists.index.size());
  std::vector<int64_t> ptr{0};
  std::vector<int32_t> index;
  index.reserve(static_cast<size_t>(lists.n * lists.n_other - listed));
  for (int64_t i = 0; i < lists.n; ++i) {
    lists.each_unlisted(i, [&index](int32_t j) { index.push_back(j); });
    ptr.push_back(static_cast<int64_t>(index.size()));
  }
  lists.ptr.swap(ptr);
  lists.index.swap(index);
  lists.lists_missing = !lists.lists_missing;
}

Lists subset(const Lists& lists, const std::vector<int32_t>& keep,
             const std::vector<int32_t>& keep_other) {
  Lists out;
  out.n = static_cast<int64_t>(keep.size());
  out.n_other = static_cast<int64_t>(keep_other.size());
  out.lists_missing = lists.lists_missing;
  std::vector<int32_t> rename(static_cast<size_t>(lists.n_other), -1);
  for (size_t k = 0; k < keep_other.size(); ++k)
    rename[keep_other[k]] = static_cast<int32_t>(k);
  out.index.resize(lists.index.size());
  out.ptr.resize(keep.size() + 1);
  int32_t* to = out.index.data();
  for (size_t k = 0; k < keep.size(); ++k) {
    const int32_t* from = lists.index.data() + lists.ptr[keep[k]];
    const int32_t* end = lists.index.data() + lists.ptr[keep[k] + 1];
    for (; from != end; ++from) {  // written even if dropped: no branch to guess
      *to = rename[*from];
      to += *to >= 0;
    }
    out.ptr[k + 1] = to - out.index.data();
  }
  out.index.resize(static_cast<size_t>(out.ptr.back()));
  return out;
}

bool is_kept_by_rows(const Lists& rows) {
  constexpr int64_t kManyCells = 1 << 9;
  return !rows.lists_missing && static_cast<int64_t>(rows.index.size()) >= kManyCells;
}

int64_t connected_blocks(const Lists& rows, std::vector<int32_t>& row_label,
                         std::vector<int32_t>& col_label) {
  std::vector<int32_t> all(static_cast<size_t>(rows.n_other));
  std::iota(all.begin(), all.end(), 0);
  int32_t* const parent = all.data();
  const auto find_root = [parent](int32_t x) {  // paths are halved on the way
    while (parent[x] != x) {
      const int32_t up = parent[x], next = parent[up];
      if (next != up) parent[x] = next;  // seldom: stores would hold up the next search
      x = next;
    }
    return x;
  };
  // Every row joins the columns it observes: a few full ones join them all.
  int64_t n_sets = rows.n_other;
  for (int64_t i = 0; i < rows.n && n_sets > 1; ++i) {
    int32_t root = -1;
    rows.each_observed(i, [&](int32_t j) {
      if (parent[j] == root) return;  // as most are, once a few rows have joined them
      const int32_t other = find_root(j);
      if (root < 0) root = other;
      if (other == root) return;
      parent[std::max(root, other)] = std::min(root, other);
      root = std::min(root, other);
      --n_sets;
    });
  }
  // Blocks are numbered in the order of their first rows.
  int32_t n_blocks = 0;
  std::vector<int32_t> label_of_root(all.size(), -1);
  row_label.assign(static_cast<size_t>(rows.n), -1);
  col_label.resize(all.size());
  for (int64_t i = 0; i < rows.n; ++i) {
    const int32_t first = rows.first_observed(i);
    if (first < 0) continue;
    int32_t& label = label_of_root[find_root(first)];
    if (label < 0) label = n_blocks++;
    row_label[i] = label;
  }
  for (size_t j = 0; j < all.size(); ++j)
    col_label[j] = label_of_root[find_root(static_cast<int32_t>(j))];
  return n_blocks;
}

}  // namespace a1gm
