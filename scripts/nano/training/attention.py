"""Attention. On CPUs in bfloat16 torch's fused kernel takes three times as long as the products below, and its softmax twice
as long as they take without one."""
import torch
import torch.nn.functional as F

BLOCK = 128            # queries whose window is looked at together
SCORES_AT_ONCE = 2**20  # they stay in the processor's cache


def attend(q, k, v, keys=None, window=0, causal=False):
    """q [B, heads, L, head_dim], k and v [B, pairs, S, head_dim] -> as q. `keys` [B, S] is True for keys that count, `window`
    their largest distance, 0 for any."""
    if not q.is_cuda and q.dtype == torch.bfloat16:
        return attend_by_products(q, k, v, keys, window, causal)
    groups = q.shape[1] // k.shape[1]
    if q.is_cuda and groups > 1:  # its kernels that take masks know no groups
        k, v = (part.repeat_interleave(groups, 1) for part in (k, v))
    bias = visible_keys(keys, q.shape[2], k.shape[2], window, q)
    return F.scaled_dot_product_attention(q, k, v, bias, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])


def visible_keys(keys, length, count, window, like):
    """Attention bias: 0 for visible keys, else the lowest number. None if all are visible."""
    visible = None
    if window:
        distance = torch.arange(length, device=like.device)[:, None] - torch.arange(count, device=like.device)
        visible = (distance.abs() <= window)[None, None]
    if keys is not None:
        visible = keys[:, None, None] if visible is None else visible & keys[:, None, None]
    if visible is None:
        return None
    return torch.zeros(visible.shape, dtype=like.dtype, device=like.device).masked_fill_(
        ~visible, torch.finfo(like.dtype).min)


def attend_by_products(q, k, v, keys, window, causal):
    (batch, heads, length, width), pairs = q.shape, k.shape[1]
    q = (q * width ** -0.5).unflatten(1, (pairs, -1)).transpose(2, 3).flatten(0, 1).contiguous()
    # An extra column of ones yields the sum of the weights. Masked keys are zeros in all columns, also in this one.
    v = torch.cat([v, torch.ones_like(v[..., :1])], -1)
    if keys is not None:
        v = v * keys[:, None, :, None]
    y = Products.apply(q, k.flatten(0, 1), v.flatten(0, 1), window, causal)
    y = y[..., :width] / y[..., width:].clamp_min(1e-30)
    return y.view(batch, pairs, length, -1, width).transpose(2, 3).flatten(1, 2)


def blocks(length, count, window, causal, dtype):
    """Ranges of queries, ranges of the keys that they see, and 1 or 0 for each if not all see the same."""
    if not window or window >= max(length, count) - 1:
        seen = torch.ones(length, count, dtype=dtype).tril()[:, None] if causal else None
        return [(slice(length), slice(count), seen)]
    seen = torch.ones(BLOCK, BLOCK + 2 * window, dtype=dtype).triu().tril(2 * window)[:, None]
    result = []
    for first in range(0, length, BLOCK):
        end, lowest, highest = min(first + BLOCK, length), max(0, first - window), min(count, first + BLOCK + window)
        offset = window - first
        result.append((slice(first, end), slice(lowest, highest),
                       seen[:end - first, :, lowest + offset:highest + offset]))
    return result


class Products(torch.autograd.Function):
    """q [N, L, heads, D], k [N, S, D], v [N, S, V] -> sums of values, weighted by exponentials of scores: [N, L, heads, V].
    Queries and keys are normalised, so scores are small and need no maximum."""

    @staticmethod
    def forward(context, q, k, v, window, causal):
        y, weights = q.new_empty(*q.shape[:3], v.shape[2]), []
        context.parts = blocks(q.shape[1], k.shape[1], window, causal, q.dtype)
        largest = max((queries.stop - (queries.start or 0)) * q.shape[2] * (keys.stop - (keys.start or 0))
                      for queries, keys, _ in context.parts)
        context.items = [slice(first, first + max(1, SCORES_AT_ONCE // largest))
                         for first in range(0, len(q), max(1, SCORES_AT_ONCE // largest))]
        for items in context.items:
            for queries, keys, seen in context.parts:
                own = torch.bmm(q[items, queries].flatten(1, 2), k[items, keys].mT).exp_()
                if seen is not None:
                    own.unflatten(1, (-1, q.shape[2])).mul_(seen)
                y[items, queries] = torch.bmm(own, v[items, keys]).unflatten(1, (-1, q.shape[2]))
                weights.append(own)
        context.save_for_backward(q, k, v, *weights)
        return y

    @staticmethod
    def backward(context, upstream):
        q, k, v, *weights = context.saved_tensors
        upstream, of_q, of_k, of_v = upstream.contiguous(), torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        weights = iter(weights)
        for items in context.items:
            for queries, keys, _ in context.parts:
                own, above = next(weights), upstream[items, queries].flatten(1, 2)
                of_v[items, keys].baddbmm_(own.mT, above)
                of_scores = torch.bmm(above, v[items, keys].mT).mul_(own)
                of_q[items, queries] = torch.bmm(of_scores, k[items, keys]).unflatten(1, (-1, q.shape[2]))
                of_k[items, keys].baddbmm_(of_scores.mT, q[items, queries].flatten(1, 2))
        return of_q, of_k, of_v, None, None
