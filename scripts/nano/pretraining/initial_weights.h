#pragma once
#include "core/checkpoint/parameters.h"

namespace carillon::pretraining {

/// The first values of a model's weights, by what their names say they are: norms 1, biases and snake exponents 0,
/// embeddings and tokens small, everything else scaled to its fan-in. Layers that write into a residual stream start
/// small, and so do the gates and the output of the DiT. `seed` and the name decide the values.
Parameters::Initial initial_weights(int64_t seed);

}  // namespace carillon::pretraining
