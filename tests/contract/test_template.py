"""Templates: order, expressions, and everything that is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from tensorant_local.template import Created, NotUnderstood, Resolver, Template

PSEUDO = {"AWS::Region": "us-east-1", "AWS::AccountId": "123456789012"}
CREATED = {
    "Table": Created("runs", {"Arn": "arn:table", "StreamArn": "arn:stream"}),
    "Api": Created("api123", {"ApiEndpoint": "http://127.0.0.1:1"}),
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("as it is", "as it is"),
        ({"Ref": "Table"}, "runs"),
        ({"Ref": "AWS::Region"}, "us-east-1"),
        ({"Fn::GetAtt": ["Table", "Arn"]}, "arn:table"),
        ({"Fn::GetAtt": "Table.StreamArn"}, "arn:stream"),
        ({"Fn::Join": ["", [{"Fn::GetAtt": ["Table", "Arn"]}, "/index/gsi1"]]}, "arn:table/index/gsi1"),
        ({"Fn::Join": [",", {"Fn::Split": ["-", "a-b-c"]}]}, "a,b,c"),
        (
            {"Fn::Sub": "${Table} in ${AWS::Region} at ${Api.ApiEndpoint}"},
            "runs in us-east-1 at http://127.0.0.1:1",
        ),
        ({"Fn::Sub": ["${who} keeps ${!Table}", {"who": {"Ref": "Api"}}]}, "api123 keeps ${Table}"),
        ({"Fn::Select": [1, {"Fn::Split": [":", {"Fn::GetAtt": ["Table", "Arn"]}]}]}, "table"),
        ({"Fn::Select": ["0", ["a", "b"]]}, "a"),
        ({"Fn::Base64": "hello"}, "aGVsbG8="),
        ({"A": [{"Ref": "Table"}, {"Ref": "AWS::NoValue"}], "B": {"Ref": "AWS::NoValue"}}, {"A": ["runs"]}),
        ({"n": 1, "yes": True, "none": None}, {"n": 1, "yes": True, "none": None}),
    ],
)
def test_expressions_have_their_values(expression: Any, value: Any) -> None:
    assert Resolver(pseudo=PSEUDO, created=CREATED).resolve(expression) == value


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ({"Fn::ImportValue": "other-stack"}, "Fn::ImportValue"),
        ({"Fn::If": ["Production", 1, 2]}, "Fn::If"),
        ({"Ref": "Nobody"}, "Nobody"),
        ({"Ref": "AWS::NotificationARNs"}, "AWS::NotificationARNs"),
        ({"Fn::GetAtt": ["Table", "Colour"]}, "Colour of Table"),
        ({"Fn::GetAtt": ["Nobody", "Arn"]}, "Nobody"),
        ({"Fn::Sub": "${Nobody}"}, "Nobody"),
    ],
)
def test_what_has_no_meaning_is_refused_by_name(expression: Any, named: str) -> None:
    with pytest.raises(NotUnderstood, match=named):
        Resolver(pseudo=PSEUDO, created=CREATED).resolve(expression)


def template(**resources: dict[str, Any]) -> Template:
    return Template.parse({"Resources": resources})


def test_resources_come_after_those_they_need() -> None:
    parsed = template(
        Route={"Type": "R", "Properties": {"Target": {"Fn::Sub": "integrations/${Integration}"}}},
        Integration={"Type": "I", "Properties": {"Uri": {"Fn::GetAtt": ["Function", "Arn"]}}},
        Function={
            "Type": "F",
            "Properties": {
                "Environment": {"Variables": {"TABLE": {"Ref": "Table"}, "IN": {"Ref": "AWS::Region"}}}
            },
            "DependsOn": ["Policy"],
        },
        Policy={"Type": "P", "DependsOn": "Role"},
        Role={"Type": "Ro"},
        Table={"Type": "T"},
    )

    order = [resource.logical_id for resource in parsed.in_order()]

    for earlier, later in [
        ("Table", "Function"),
        ("Role", "Policy"),
        ("Policy", "Function"),
        ("Function", "Integration"),
        ("Integration", "Route"),
    ]:
        assert order.index(earlier) < order.index(later)


def test_a_circle_is_named() -> None:
    parsed = template(
        Egg={"Type": "E", "Properties": {"From": {"Ref": "Hen"}}},
        Hen={"Type": "H", "Properties": {"From": {"Ref": "Egg"}}},
    )

    with pytest.raises(NotUnderstood, match=r"Egg|Hen"):
        parsed.in_order()


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"Resources": {}, "Transform": "AWS::Serverless-2016-10-31"}, "Transform"),
        ({"Resources": {}, "Parameters": {"VpcId": {"Type": "String"}}}, "VpcId"),
        ({"Resources": {}, "Conditions": {"IsProduction": True}}, "IsProduction"),
        ({"Resources": {"A": {"Type": "T", "Condition": "IsProduction"}}}, "IsProduction"),
        ({"Resources": {"A": {"Type": "T", "CreationPolicy": {}}}}, "A: CreationPolicy"),
    ],
)
def test_parts_of_a_template_without_meaning_are_refused_by_name(
    document: dict[str, Any], named: str
) -> None:
    with pytest.raises(NotUnderstood, match=named):
        Template.parse(document)


def test_what_cdk_adds_for_its_own_tool_is_no_trouble() -> None:
    parsed = Template.parse(
        {
            "Description": "sample",
            "Parameters": {"BootstrapVersion": {"Type": "AWS::SSM::Parameter::Value<String>"}},
            "Rules": {"CheckBootstrapVersion": {}},
            "Conditions": {"CDKMetadataAvailable": {}},
            "Resources": {"CDKMetadata": {"Type": "AWS::CDK::Metadata", "Condition": "CDKMetadataAvailable"}},
            "Outputs": {"Name": {"Value": {"Ref": "CDKMetadata"}}},
        }
    )

    assert parsed.outputs == {"Name": {"Ref": "CDKMetadata"}}
