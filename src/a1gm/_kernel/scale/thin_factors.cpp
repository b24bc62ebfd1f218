#include "scale/flow.hpp"

#include <algorithm>

#include "interrupt.hpp"
#include "reduce/peel.hpp"

namespace a1gm {

constexpr int32_t kNone = -1;
constexpr int64_t kVisit = 16;  // what a neighbour costs, in cells

ThinFactors::ThinFactors(std::vector<uint8_t>&& is_ground, int64_t n_edges)
    : is_ground_(std::move(is_ground)),
      head_(is_ground_.size(), kNone),
      degree_(head_.size(), 0),
      place_(head_.size(), kNone) {
  halves_.reserve(static_cast<size_t>(2 * n_edges));
}

void ThinFactors::join(int64_t a, int64_t b, double conductance) {
  if (!(conductance > 0.0)) return;
  const auto ends = {std::pair(a, b), std::pair(b, a)};
  for (const auto& [from, to] : ends) {
    halves_.push_back({conductance, static_cast<int32_t>(to), head_[from]});
    head_[from] = static_cast<int32_t>(halves_.size()) - 1;
    ++degree_[from];
  }
}

void ThinFactors::enqueue(int32_t node) {
  if (!is_ground_[node]) queue_.push(node, degree_[node]);
}

// The neighbours of a node, several edges to one of them as one.
void ThinFactors::gather(int32_t node) {
  found_.clear();
  for (int32_t at = head_[node]; at != kNone; at = halves_[at].next) {
    const Half& half = halves_[at];
    if (half.conductance == 0.0) continue;
    int32_t& place = place_[half.node];
    if (place == kNone) {
      place = static_cast<int32_t>(found_.size());
      found_.push_back({half.conductance, half.node, at});
    } else {
      found_[place].conductance += half.conductance;
      halves_[at ^ 1].conductance = 0.0;
      --degree_[half.node];
      enqueue(half.node);
    }
  }
  for (const Neighbour& neighbour : found_) place_[neighbour.node] = kNone;
  std::sort(found_.begin(), found_.end(), [](const Neighbour& a, const Neighbour& b) {
    return a.conductance < b.conductance;
  });
}

// Eliminates a node whose neighbours were gathered.
void ThinFactors::thin_out(int32_t node) {
  sums_.clear();
  double sum = 0.0;
  for (const Neighbour& neighbour : found_) sums_.push_back(sum += neighbour.conductance);
  double left = 1.0, total = sum;
  for (size_t k = 0; k + 1 < found_.size(); ++k) {
    const auto part = static_cast<float>(found_[k].conductance * left / total);
    const double share = part;
    const double u = static_cast<double>(name_of(drawn_++) >> 11) * 0x1p-53;
    const double at = sums_[k] + u * (sum - sums_[k]);
    const size_t drawn = std::min<size_t>(
        std::upper_bound(sums_.begin() + k + 1, sums_.end(), at) - sums_.begin(),
        sums_.size() - 1);
    // The edge from here to neighbour k becomes one from there to the drawn one.
    const int32_t half = found_[k].half, other = found_[drawn].node;
    const double conductance = share * (1.0 - share) * total;
    halves_[half ^ 1].node = other;
    halves_[half ^ 1].conductance = conductance;
    halves_[half] = {conductance, found_[k].node, kNone};
    if (!is_ground_[other]) {
      halves_[half].next = head_[other];
      head_[other] = half;
      ++degree_[other];
    }
    entries_.push_back({found_[k].node, part});
    left *= 1.0 - share;
    total *= (1.0 - share) * (1.0 - share);
  }
  const Neighbour& last = found_.back();
  halves_[last.half ^ 1].conductance = 0.0;
  --degree_[last.node];
  enqueue(last.node);
  entries_.push_back({last.node, 1.0F});
  pivot_.push_back(last.conductance * left);
  order_.push_back(node);
  ptr_.push_back(static_cast<int64_t>(entries_.size()));
}

void ThinFactors::eliminate() {
  for (size_t k = 0; k < head_.size(); ++k) enqueue(static_cast<int32_t>(k));
  Poll poll;
  const auto degree_of = [this](int32_t node) { return degree_[node]; };
  for (int32_t node; (node = queue_.pop(degree_of)) != kNone;) {
    gather(node);
    poll.worked(kVisit * static_cast<int64_t>(1 + found_.size()));
    degree_[node] = kNone;
    if (!found_.empty()) thin_out(node);
  }
  int32_t last = 0;
  for (const int32_t node : order_) place_[node] = last++;
  for (int32_t& place : place_)
    if (place == kNone) place = last++;
  for (Entry& entry : entries_) entry.to = place_[entry.to];
  std::vector<Half>().swap(halves_);
  queue_ = {};
}

void ThinFactors::solve(double* y) const {
  const auto n = static_cast<int64_t>(order_.size());
  const Entry* entries = entries_.data();
  Poll poll;
  for (int64_t k = 0; k < n; ++k) {
    double here = y[k];
    const int64_t last = ptr_[k + 1] - 1;
    poll.worked(last - ptr_[k]);
    for (int64_t e = ptr_[k]; e < last; ++e) {
      const double sent = entries[e].share * here;
      y[entries[e].to] += sent;
      here -= sent;
    }
    y[entries[last].to] += here;
    y[k] = here / pivot_[k];
  }
  std::fill(y + n, y + place_.size(), 0.0);
  for (int64_t k = n - 1; k >= 0; --k) {
    const int64_t last = ptr_[k + 1] - 1;
    poll.worked(last - ptr_[k]);
    double here = y[k] + y[entries[last].to];
    for (int64_t e = last - 1; e >= ptr_[k]; --e)
      here += entries[e].share * (y[entries[e].to] - here);
    y[k] = here;
  }
}

}  // namespace a1gm
