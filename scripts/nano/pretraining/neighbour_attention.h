#pragma once
#include "core/checkpoint/config.h"
#include "core/checkpoint/parameters.h"

namespace carillon::pretraining {

/// Sets the DiT's first weights so that it learns music soon: heads of layers with a sliding window look at the patch
/// before and at the one after, wherever they are, and every gate is somewhat open.
///
/// Half of what a latent frame holds follows linearly from the frames around it (a tone goes on), and a head of random
/// weights takes thousands of steps to find its neighbour. Its query and key get a constant part, whose rotary angles
/// agree at the wanted distance; everything stays trainable. Does nothing where the DiT has weights already.
void begin_with_neighbours(Parameters& parameters, const DitConfig& config);

}  // namespace carillon::pretraining
