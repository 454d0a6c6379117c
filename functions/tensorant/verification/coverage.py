"""The adapter against the base model's own layers: each that was to be adapted is, and every shape fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorant.verification.faults import Code, Unsound, unsound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorant.contract import BaseModules
    from tensorant.verification.adapter_config import AdapterConfig
    from tensorant.verification.tensors import Contents, Extra, Pair


def check_coverage(contents: Contents, config: AdapterConfig, base: BaseModules) -> None:
    """Shapes first: a tensor of another base model explains what is missing."""
    for pair in contents.pairs:
        if not config.is_experts(pair.module):  # their weights belong to no linear layer
            _check_shape(pair, base)
    for extra in contents.extras:
        _check_extra(extra, base)
    adapted = {pair.module for pair in contents.pairs}
    missing = [module for module in _wanted(config, base) if module not in adapted]
    if missing:
        raise unsound(
            Code.COVERAGE,
            f"{len(missing)} of the base model's modules are not adapted, the first {missing[0]}.",
        )


def _check_shape(pair: Pair, base: BaseModules) -> None:
    known = base.embeddings if pair.embedding else base.linear
    shape = known.get(pair.module)
    if shape is None:
        raise unsound(Code.NOT_IN_BASE, f"The base model has no layer {pair.module} that could be adapted.")
    found = [pair.a.shape[1], pair.b.shape[0]] if pair.embedding else [pair.b.shape[0], pair.a.shape[1]]
    if found != shape:
        raise _misfit(pair.module, found, shape, tokens=found[0] != shape[0], base=base)


def _check_extra(extra: Extra, base: BaseModules) -> None:
    """Only weights of linear layers and embeddings are known. Some models store them the other way round."""
    shape = base.embeddings.get(extra.module) or base.linear.get(extra.module)
    found = list(extra.tensor.shape)
    if extra.parameter == "weight" and shape is not None and sorted(found) != sorted(shape):
        raise _misfit(extra.module, found, shape, tokens=found[0] != shape[0], base=base)


def _misfit(
    module: str, found: Sequence[int], shape: Sequence[int], *, tokens: bool, base: BaseModules
) -> Unsound:
    """Another number of tokens is a resized vocabulary."""
    if tokens and (module in base.embeddings or module == base.output):
        return unsound(Code.VOCAB_RESIZED, f"{module} has {found[0]} tokens; the base model has {shape[0]}.")
    return unsound(
        Code.BASE_SHAPE, f"{module} fits a layer of {list(found)}; the base model's has {list(shape)}."
    )


def _wanted(config: AdapterConfig, base: BaseModules) -> Iterator[str]:
    """The linear layers that the targets name. A user's pattern is not run here: it could run for ever."""
    for module in base.linear:
        if config.is_saved_whole(module):
            continue
        every = config.all_linear and module != base.output
        named = not isinstance(config.target_modules, str) and config.names(module)
        if every or named:
            yield module
