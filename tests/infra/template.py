"""A synthesized template as tests read it: resources by type, references printed in angle brackets."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Resource = dict[str, Any]
Rights = set[tuple[str, str]]


@dataclass(frozen=True)
class Template:
    """`path` is where it lies. Logical ids are named without the hash that CDK adds."""

    path: Path
    content: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> Template:
        return cls(path, json.loads(path.read_text(encoding="utf-8")))

    def resources(self, kind: str) -> dict[str, Resource]:
        """Properties by name, of every resource of a type."""
        found = {
            _name(logical_id): resource.get("Properties", {})
            for logical_id, resource in self.content["Resources"].items()
            if resource["Type"] == kind
        }
        assert found, f"the template has no {kind}"
        return found

    def only(self, kind: str) -> Resource:
        (resource,) = self.resources(kind).values()
        return resource

    def attribute(self, kind: str, attribute: str) -> set[str]:
        """An attribute beside the properties, such as DeletionPolicy, over all resources of a type."""
        return {
            str(resource.get(attribute))
            for resource in self.content["Resources"].values()
            if resource["Type"] == kind
        }

    def functions(self) -> dict[str, Resource]:
        """By module under `tensorant.handlers`."""
        return {
            function["Handler"].split(".")[2]: function
            for function in self.resources("AWS::Lambda::Function").values()
        }

    def rights(self, role: Any) -> Rights:
        """Pairs of action and resource that policies give to `role`, a reference as a function holds it."""
        name = printed(role).removeprefix("<").removesuffix(">").removesuffix(".Arn")
        holders = [
            policy["PolicyDocument"]["Statement"]
            for policy in self.resources("AWS::IAM::Policy").values()
            if f"<{name}>" in [printed(each) for each in policy["Roles"]]
        ]
        return {
            (action, printed(resource))
            for statements in holders
            for statement in statements
            for action in _listed(statement["Action"])
            for resource in _listed(statement["Resource"])
        }


def printed(value: Any) -> str:
    """A value with its references in angle brackets: `<Table.Arn>/index/gsi1`."""
    match value:
        case {"Ref": str(name)}:
            return f"<{_name(name)}>"
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"<{_name(name)}.{attribute}>"
        case {"Fn::Join": [str(separator), list(parts)]}:
            return separator.join(printed(part) for part in parts)
        case _:
            return str(value)


def _name(logical_id: str) -> str:
    return re.sub(r"[0-9A-F]{8}$", "", logical_id)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
