"""A synthesized CloudFormation template: what it holds, in which order it is made, what its expressions mean.

Reference: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/intrinsic-function-reference.html
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SECTIONS = frozenset(
    {
        "AWSTemplateFormatVersion",
        "Conditions",
        "Description",
        "Mappings",
        "Metadata",
        "Outputs",
        "Parameters",
        "Resources",
        "Rules",
    }
)
RESOURCE_KEYS = frozenset(
    {"DeletionPolicy", "DependsOn", "Metadata", "Properties", "Type", "UpdateReplacePolicy"}
)
BOOTSTRAP_ONLY = frozenset({"BootstrapVersion", "CheckBootstrapVersion", "CDKMetadataAvailable"})
"""What CDK adds for its own deployment tool: a parameter, a rule over it, a condition. They mean nothing here."""

_NO_VALUE = object()
_VARIABLE = re.compile(r"\$\{(!?)([\w:.]+)\}")


class NotUnderstood(Exception):
    """The template holds something that the embedded cloud cannot stand in for; the message names it."""


@dataclass(frozen=True)
class Created:
    """A resource that exists: what Ref gives, and what Fn::GetAtt gives."""

    ref: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Resource:
    logical_id: str
    type: str
    properties: Mapping[str, Any]
    needs: frozenset[str]

    @classmethod
    def of(cls, logical_id: str, declared: Mapping[str, Any]) -> Resource:
        if strange := declared.keys() - RESOURCE_KEYS - {"Condition"}:
            raise NotUnderstood(f"{logical_id}: {', '.join(sorted(strange))}")
        if (condition := declared.get("Condition")) and condition not in BOOTSTRAP_ONLY:
            raise NotUnderstood(f"{logical_id}: condition {condition}")
        properties = declared.get("Properties", {})
        explicit = declared.get("DependsOn", [])
        needs = {explicit} if isinstance(explicit, str) else set(explicit)
        return cls(logical_id, declared["Type"], properties, frozenset(needs | set(_references(properties))))


@dataclass(frozen=True)
class Template:
    resources: Mapping[str, Resource]
    outputs: Mapping[str, Any]

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Template:
        """Raises NotUnderstood for parts of a template that have no meaning here."""
        if strange := document.keys() - SECTIONS:
            raise NotUnderstood(f"template section {', '.join(sorted(strange))}")
        for section in ("Parameters", "Rules", "Conditions", "Mappings"):
            if strange := document.get(section, {}).keys() - BOOTSTRAP_ONLY:
                raise NotUnderstood(f"{section}: {', '.join(sorted(strange))}")
        resources = {name: Resource.of(name, declared) for name, declared in document["Resources"].items()}
        outputs = {name: output["Value"] for name, output in document.get("Outputs", {}).items()}
        return cls(resources, outputs)

    def in_order(self) -> list[Resource]:
        """Every resource after those it needs. Raises NotUnderstood for a circle."""
        graph = {
            name: [need for need in sorted(resource.needs) if need in self.resources]
            for name, resource in self.resources.items()
        }
        try:
            return [self.resources[name] for name in TopologicalSorter(graph).static_order()]
        except CycleError as error:
            raise NotUnderstood(f"a circle of resources: {' → '.join(error.args[1])}") from error


class Resolver:
    """Gives expressions their values, from pseudo parameters (`AWS::Region`) and what has been created so far.

    `created` is read at each use: add to it as resources come into being.
    """

    def __init__(self, *, pseudo: Mapping[str, str], created: Mapping[str, Created]) -> None:
        self._pseudo = pseudo
        self._created = created
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Fn::GetAtt": self._attribute,
            "Fn::Join": self._join,
            "Fn::Sub": self._substitute,
            "Fn::Select": self._select,
            "Fn::Split": self._split,
            "Fn::Base64": self._base64,
        }

    def resolve(self, value: Any) -> Any:
        """The same structure with every expression replaced. Raises NotUnderstood."""
        match value:
            case dict() if _is_expression(value):
                ((name, argument),) = value.items()
                if name not in self._functions:
                    raise NotUnderstood(f"{name} in a template")
                return self._functions[name](argument)
            case dict():
                resolved = {name: self.resolve(item) for name, item in value.items()}
                return {name: item for name, item in resolved.items() if item is not _NO_VALUE}
            case list():
                return [item for item in map(self.resolve, value) if item is not _NO_VALUE]
            case _:
                return value

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return _NO_VALUE
        if name in self._pseudo:
            return self._pseudo[name]
        return self._resource(name).ref

    def _attribute(self, argument: str | list[str]) -> str:
        name, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        attributes = self._resource(name).attributes
        if attribute not in attributes:
            raise NotUnderstood(f"attribute {attribute} of {name}")
        return attributes[attribute]

    def _resource(self, name: str) -> Created:
        if name not in self._created:
            raise NotUnderstood(f"a reference to {name}, which is no resource that exists")
        return self._created[name]

    def _join(self, argument: list[Any]) -> str:
        separator, parts = argument
        return str(separator).join(map(str, self.resolve(parts)))

    def _split(self, argument: list[Any]) -> list[str]:
        separator, text = argument
        return str(self.resolve(text)).split(separator)

    def _select(self, argument: list[Any]) -> Any:
        index, items = argument
        return self.resolve(items)[int(index)]

    def _base64(self, argument: Any) -> str:
        return base64.b64encode(str(self.resolve(argument)).encode()).decode()

    def _substitute(self, argument: Any) -> str:
        text, variables = argument if isinstance(argument, list) else (argument, {})

        def value(match: re.Match[str]) -> str:
            literal, name = match.groups()
            if literal:
                return f"${{{name}}}"
            if name in variables:
                return str(self.resolve(variables[name]))
            return str(self._attribute(name) if "." in name else self._ref(name))

        return _VARIABLE.sub(value, text)


def _is_expression(value: Mapping[str, Any]) -> bool:
    return len(value) == 1 and (next(iter(value)) == "Ref" or next(iter(value)).startswith("Fn::"))


def _references(value: Any) -> Iterator[str]:
    """The logical ids (and pseudo parameters) that a value speaks of."""
    match value:
        case {"Ref": str(name)}:
            yield name
        case {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case {"Fn::GetAtt": str(path)}:
            yield path.split(".")[0]
        case {"Fn::Sub": argument}:
            yield from _substituted(argument)
        case dict():
            for item in value.values():
                yield from _references(item)
        case list():
            for item in value:
                yield from _references(item)


def _substituted(argument: Any) -> Iterator[str]:
    text, variables = argument if isinstance(argument, list) else (argument, {})
    for literal, name in _VARIABLE.findall(text):
        if not literal and name not in variables:
            yield name.split(".")[0]
    yield from _references(variables)
