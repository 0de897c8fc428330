"""The sentences of sections 2 and 4 about complexity, sequences and paths, beside what was counted and measured."""

from __future__ import annotations

from transduce_paper.growth import per_unit
from transduce_paper.report import Claim, agreement
from transduce_paper.table1.compared_layers import COMPARED, KERNEL_WIDTH, NEIGHBOURHOOD, ComparedLayer
from transduce_paper.table1.exponents import exponents_of, listed
from transduce_paper.table1.layer_comparison import ATTENTION, RECURRENT, Measured

__all__ = ["claims_about_layers"]


def claims_about_layers(measured: Measured) -> tuple[Claim, ...]:
    """Return the sentences of section 4 about complexity, sequence and paths."""
    sizes = measured.sizes
    own_n, own_d = (float(fit or 0) for fit in exponents_of(measured)[ATTENTION][:2])
    chains, steps = measured.chains[ATTENTION], per_unit(sizes.graph_n, measured.chains[RECURRENT])
    of_shorter = [ratio for (n, d), ratio in measured.times.ratios.items() if n < d]
    slowest = max(of_shorter, default=None)
    restricted, reach = next(
        (layer, paths) for layer, paths in measured.paths.items() if layer.name.startswith("Self-attention, restricted")
    )
    return (
        Claim(
            "Self-Attention [...] O(n² · d)",
            "Table 1",
            agreement(abs(own_n - 2) < 0.05 and abs(own_d - 1) < 0.05),
            f"Counted without projections n^{own_n:.2f} d^{own_d:.2f}; the four projections, which the table leaves"
            " out, add 8 n d².",
            "algebra",
        ),
        Claim(
            "a self-attention layer connects all positions with a constant number of sequentially executed operations,"
            " whereas a recurrent layer requires O(n) sequential operations",
            "section 4",
            agreement(len(set(chains)) == 1 and steps > 1),
            f"{listed(chains)} operations in sequence at n = {listed(sizes.graph_n)}; for the LSTM {steps:.0f} more"
            " with each position.",
            "by construction",
        ),
        Claim(
            "In terms of computational complexity, self-attention layers are faster than recurrent layers when the"
            " sequence length n is smaller than the representation dimensionality d",
            "section 4",
            agreement(None if slowest is None else slowest < 1),
            "No n below d was measured."
            if slowest is None
            else f"At n = d / 2, self-attention takes at most {slowest:.2f} times the time of an LSTM; the operations"
            " cross at n = 2 d with all projections, not at n = d.",
        ),
        *_claims_on_convolutional_paths(measured),
        Claim(
            "This would increase the maximum path length to O(n/r)",
            "section 4",
            agreement(list(reach) == [restricted.exact_path(n) for n in sizes.graph_n] and reach[-1] != reach[0]),
            f"Restricted to r = {NEIGHBOURHOOD}, paths of {listed(reach)} layers at n = {listed(sizes.graph_n)}.",
            "algebra",
        ),
    )


def _claims_on_convolutional_paths(measured: Measured) -> tuple[Claim, ...]:
    """Return what sections 2 and 4 say of stacks of convolutions, and of separable ones."""
    sizes = measured.sizes.graph_n
    contiguous, dilated, separable = (
        next(layer for layer in COMPARED if layer.name.startswith("Convol") and layer.name.endswith("contiguous")),
        next(layer for layer in COMPARED if layer.name.endswith("dilated")),
        next(layer for layer in COMPARED if layer.name.startswith("Separable")),
    )

    def is_exact(layer: ComparedLayer) -> bool:
        return list(measured.paths[layer]) == list(map(layer.exact_path, sizes))

    one_layer = contiguous.widths.values[0] if contiguous.widths else 0
    saved = [
        own.whole / other.whole
        for own, other in zip(measured.of_width[contiguous], measured.of_width[separable], strict=True)
    ]
    widths = separable.widths.values if separable.widths else ()
    return (
        Claim(
            "the number of operations required to relate signals from two arbitrary input or output positions grows in"
            " the distance between positions, linearly for ConvS2S and logarithmically for ByteNet",
            "section 2",
            agreement(is_exact(contiguous) and is_exact(dilated)),
            f"Kernels of width {KERNEL_WIDTH} need {listed(measured.paths[contiguous])} layers at n ="
            f" {listed(sizes)}, dilated ones {listed(measured.paths[dilated])}:"
            f" {contiguous.exact_path_text} and {dilated.exact_path_text}.",
            "algebra",
        ),
        Claim(
            "A single convolutional layer with kernel width k < n does not connect all pairs of input and output"
            " positions",
            "section 4",
            agreement(all(path is not None and path > 1 for path in measured.paths[contiguous])),
            f"With k = {one_layer} no n of {listed(sizes)} is reached by one layer.",
            "algebra",
        ),
        Claim(
            "Separable convolutions, however, decrease the complexity considerably",
            "section 4",
            agreement(min(saved) > 1 and saved == sorted(saved)),
            f"At k = {listed(widths)} a plain convolution has {', '.join(f'{each:.1f}' for each in saved)} times the"
            " operations.",
            "algebra",
        ),
    )
