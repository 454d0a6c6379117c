"""The options of `runs draft`, named like the API's fields; what is not given is left to the API's defaults."""

from __future__ import annotations

from typing import Annotated

import typer

LORA = "LoRA"
TRAINING = "Training"

BaseModel = Annotated[
    str | None,
    typer.Option(
        metavar="REPOSITORY",
        help="Hub repository, as HuggingFaceTB/SmolLM2-135M-Instruct; in local mode by default its own.",
        show_default=False,
    ),
]
Revision = Annotated[
    str | None,
    typer.Option(
        help="The base model's exact revision: a commit, a tag or a branch; by default main.",
        show_default=False,
    ),
]
InstanceTypes = Annotated[
    list[str],
    typer.Option(
        "--instance-type",
        "--instance-types",
        metavar="TYPE",
        help="From `connections gpus`; repeat it for others to try when there is no capacity.",
    ),
]
PriceLimit = Annotated[
    str,
    typer.Option(
        "--price-limit-usd-per-hour",
        "--price-limit",
        metavar="USD",
        help="Not launched above this, disk included.",
    ),
]
TimeLimit = Annotated[
    int,
    typer.Option("--time-limit-minutes", "--time-limit", metavar="MINUTES", help="Downloads included."),
]
Name = Annotated[
    str | None, typer.Option(help="What people call it; by default the base model's.", show_default=False)
]
ConnectionId = Annotated[
    str | None,
    typer.Option(
        "--connection-id",
        "--connection",
        metavar="ID",
        help="Where to train: by default the aws connection used last, or the only one.",
        show_default=False,
    ),
]
DatasetVersionId = Annotated[
    str | None,
    typer.Option(
        "--dataset-version-id",
        "--dataset-version",
        metavar="ID",
        help="By default the one uploaded last, or the only valid one.",
        show_default=False,
    ),
]
WorkspaceGib = Annotated[
    int | None, typer.Option(metavar="GIB", help="Disk for the run's work.", show_default=False)
]
Trial = Annotated[bool, typer.Option("--trial", help="Train on a small sample.")]

Rank = Annotated[
    int | None, typer.Option(help="Of the adapter's matrices.", rich_help_panel=LORA, show_default=False)
]
Alpha = Annotated[
    int | None, typer.Option(help="Scales the adapter.", rich_help_panel=LORA, show_default=False)
]
Dropout = Annotated[
    float | None, typer.Option(help="Before the adapter.", rich_help_panel=LORA, show_default=False)
]
TargetModules = Annotated[
    list[str] | None,
    typer.Option(
        "--target-module",
        "--target-modules",
        metavar="NAME",
        help="all-linear, or names; repeat it.",
        rich_help_panel=LORA,
        show_default=False,
    ),
]
UseRslora = Annotated[
    bool, typer.Option("--use-rslora", help="Rank-stabilized scaling.", rich_help_panel=LORA)
]
UseDora = Annotated[bool, typer.Option("--use-dora", help="Weight-decomposed.", rich_help_panel=LORA)]

Epochs = Annotated[
    float | None,
    typer.Option(help="Passes over the dataset.", rich_help_panel=TRAINING, show_default=False),
]
MaxSteps = Annotated[
    int | None, typer.Option(help="Ends it earlier.", rich_help_panel=TRAINING, show_default=False)
]
LearningRate = Annotated[
    float | None, typer.Option(help="At its peak.", rich_help_panel=TRAINING, show_default=False)
]
BatchSize = Annotated[
    int | None, typer.Option(help="Rows a step.", rich_help_panel=TRAINING, show_default=False)
]
MaxTokens = Annotated[
    int | None, typer.Option(help="Tokens a row, at most.", rich_help_panel=TRAINING, show_default=False)
]
WarmupRatio = Annotated[
    float | None,
    typer.Option(help="Part of the steps until the peak.", rich_help_panel=TRAINING, show_default=False),
]
Seed = Annotated[
    int | None, typer.Option(help="Of everything random.", rich_help_panel=TRAINING, show_default=False)
]
