#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace carillon::pretraining {

/// What a piece is, as its prompt says it.
struct Facts {
  std::string genre;
  double bpm;
  int64_t tonic;  // semitones above C
  bool is_minor;
  int64_t metre;  // 2, 3, 4 or 6 as in 6/8
};

/// "Bb minor" as tonic and mode. Throws kBadArgument where it is no key.
Facts facts_of(const std::string& genre, double bpm, const std::string& key_scale, const std::string& time_signature);

/// Beats of a bar: two of three eighths in 6/8.
int64_t beats_per_bar(const Facts& facts);

/// Facts as numbers between 0 and 1: tempo as sixteen overlapping ranges, tonic, mode, metre, genre. What shares of a
/// hidden state each of them needs, a linear layer can read and write.
/// `genres`: all that there are, in the order of their numbers.
at::Tensor as_numbers(const Facts& facts, const std::vector<std::string>& genres);

/// Facts that numbers [count] near those of as_numbers say. The tempo is between that of the strongest range and its
/// neighbours'.
Facts from_numbers(const at::Tensor& numbers, const std::vector<std::string>& genres);

/// How many numbers as_numbers gives.
int64_t number_count(size_t genres);

}  // namespace carillon::pretraining
