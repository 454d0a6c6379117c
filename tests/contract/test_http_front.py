"""The HTTP front answers like API Gateway: routes, JWT check, limits, payload 2.0."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tensorant_local.aws.running import Invocation
from tensorant_local.http_front import HttpFront
from tensorant_local.http_routes import HttpApi, Route
from tensorant_local.jwt_authorizer import JwtAuthorizer, as_strings

ISSUER = "https://issuer.example/pool"
AUDIENCE = "client-1"
PAST, FUTURE = 1_500_000_000, 4_000_000_000
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Functions:
    """Answers for every function: keeps the events, and says what a test told it to."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.called: list[str] = []
        self.answer: Any = {"statusCode": 200, "body": "done"}
        self.error: str | None = None
        self.until = threading.Event()
        self.until.set()

    def __call__(self, function_name: str, payload: bytes) -> Invocation:
        self.called.append(function_name)
        self.events.append(json.loads(payload))
        self.until.wait(10)
        return Invocation(json.dumps(self.answer).encode(), self.error)


def published_keys() -> bytes:
    key = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
    return json.dumps({"keys": [{**key, "kid": "key-1", "alg": "RS256", "use": "sig"}]}).encode()


def token(*, key: rsa.RSAPrivateKey = KEY, key_id: str = "key-1", **changes: Any) -> str:
    claims = {"iss": ISSUER, "sub": "ada", "client_id": AUDIENCE, "iat": PAST, "exp": FUTURE, **changes}
    present = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(present, key, algorithm="RS256", headers={"kid": key_id})


def routes() -> list[Route]:
    people = JwtAuthorizer(issuer=ISSUER, audience=(AUDIENCE,), keys=published_keys)
    return [
        Route("ANY /v1/{proxy+}", "api", people),
        Route("GET /v1/runs/{run_id}/review", "provider", people),
        Route("POST /agent/v1/{proxy+}", "agent"),
        Route("POST /slow", "slow", timeout_seconds=0.2),
    ]


@pytest.fixture
def functions() -> Functions:
    return Functions()


@pytest.fixture
def http(functions: Functions) -> Iterator[httpx.Client]:
    front = HttpFront(functions)
    front.serve(HttpApi.of("api123", routes()))
    with httpx.Client(base_url=front.url, trust_env=False) as client:
        yield client
    functions.until.set()
    front.close()


def bearer(value: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {value}"}


@pytest.mark.parametrize(
    ("method", "path", "function", "parameters"),
    [
        ("GET", "/v1/me", "api", {"proxy": "me"}),
        ("DELETE", "/v1/a/b/c", "api", {"proxy": "a/b/c"}),
        ("GET", "/v1/runs/run_1/review", "provider", {"run_id": "run_1"}),
        ("POST", "/v1/runs/run_1/review", "api", {"proxy": "runs/run_1/review"}),
        ("POST", "/agent/v1/sessions", "agent", {"proxy": "sessions"}),
    ],
)
def test_the_most_specific_route_answers(
    http: httpx.Client,
    functions: Functions,
    method: str,
    path: str,
    function: str,
    parameters: dict[str, str],
) -> None:
    answer = http.request(method, path, headers=bearer(token()))

    assert answer.status_code == 200
    assert functions.called == [function]
    assert functions.events[0]["pathParameters"] == parameters


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("GET", "/v1"), ("GET", "/agent/v1/sessions"), ("GET", "/v2/x")]
)
def test_without_a_route_it_is_not_found(
    http: httpx.Client, functions: Functions, method: str, path: str
) -> None:
    answer = http.request(method, path)

    assert (answer.status_code, answer.json()) == (404, {"message": "Not Found"})
    assert functions.called == []


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"Authorization": "Bearer nonsense"},
        bearer(token(key=OTHER_KEY)),
        bearer(token(key_id="key-2")),
        bearer(token(iss="https://elsewhere.example")),
        bearer(token(client_id="client-2")),
        bearer(token(aud="client-2")),
        bearer(token(exp=PAST + 60)),
        bearer(token(exp=None)),
        bearer(
            jwt.encode(
                {"iss": ISSUER, "client_id": AUDIENCE, "exp": FUTURE},
                "k" * 32,
                headers={"kid": "key-1"},
            )
        ),
    ],
    ids=[
        "none",
        "nonsense",
        "other key",
        "unknown key",
        "issuer",
        "client",
        "audience",
        "expired",
        "no expiry",
        "HMAC",
    ],
)
def test_a_token_that_is_not_good_is_unauthorized(
    http: httpx.Client, functions: Functions, header: dict[str, str]
) -> None:
    answer = http.get("/v1/me", headers=header)

    assert (answer.status_code, answer.json()) == (401, {"message": "Unauthorized"})
    assert functions.called == []


@pytest.mark.parametrize("header", [token(), f"Bearer {token(aud=[AUDIENCE, 'more'], client_id=None)}"])
def test_a_good_token_lets_its_claims_through(http: httpx.Client, functions: Functions, header: str) -> None:
    answer = http.get("/v1/me", headers={"Authorization": header})

    assert answer.status_code == 200
    context = functions.events[0]["requestContext"]
    assert context["authorizer"]["jwt"]["claims"]["sub"] == "ada"
    assert context["authorizer"]["jwt"]["scopes"] is None


def test_claims_are_strings_as_go_prints_them() -> None:
    claims = {
        "groups": ["platform-admins", "team a"],
        "exp": 1893456000,
        "verified": True,
        "more": {"a": [1, 2]},
    }

    assert as_strings(claims) == {
        "groups": "[platform-admins team a]",
        "exp": "1893456000",
        "verified": "true",
        "more": "map[a:[1 2]]",
    }


def test_an_unauthorized_route_has_no_authorizer_context(http: httpx.Client, functions: Functions) -> None:
    http.post("/agent/v1/sessions", json={})

    assert "authorizer" not in functions.events[0]["requestContext"]


def test_the_event_is_payload_2_0(http: httpx.Client, functions: Functions) -> None:
    answer = http.post(
        "/agent/v1/events?step=1&step=2&name=a%20b&empty=",
        content=b'{"n": 1}',
        headers=[
            ("Content-Type", "application/json"),
            ("Cookie", "a=1; b=2"),
            ("X-Many", "one"),
            ("X-Many", "two"),
            ("User-Agent", "agent/1"),
        ],
    )

    event = functions.events[0]
    assert event["version"] == "2.0"
    assert event["routeKey"] == "POST /agent/v1/{proxy+}"
    assert event["rawPath"] == "/agent/v1/events"
    assert event["rawQueryString"] == "step=1&step=2&name=a%20b&empty="
    assert event["queryStringParameters"] == {"step": "1,2", "name": "a b", "empty": ""}
    assert event["pathParameters"] == {"proxy": "events"}
    assert event["cookies"] == ["a=1", "b=2"]
    assert "cookie" not in event["headers"]
    assert event["headers"]["x-many"] == "one,two"
    assert event["headers"]["content-type"] == "application/json"
    assert (event["body"], event["isBase64Encoded"]) == ('{"n": 1}', False)
    context = event["requestContext"]
    assert (context["apiId"], context["stage"]) == ("api123", "$default")
    assert context["http"] == {
        "method": "POST",
        "path": "/agent/v1/events",
        "protocol": "HTTP/1.1",
        "sourceIp": "127.0.0.1",
        "userAgent": "agent/1",
    }
    assert answer.headers["apigw-requestid"] == context["requestId"]


def test_what_a_request_lacks_the_event_lacks(http: httpx.Client, functions: Functions) -> None:
    http.post("/agent/v1/sessions")

    assert {"body", "cookies", "queryStringParameters"}.isdisjoint(functions.events[0])


def test_a_binary_body_is_handed_on_in_base64(http: httpx.Client, functions: Functions) -> None:
    http.post("/agent/v1/logs", content=b"\x00\xff", headers={"Content-Type": "application/octet-stream"})

    event = functions.events[0]
    assert event["isBase64Encoded"] is True
    assert base64.b64decode(event["body"]) == b"\x00\xff"


def test_an_answer_with_a_status_is_taken_apart(http: httpx.Client, functions: Functions) -> None:
    functions.answer = {
        "statusCode": 201,
        "headers": {"Content-Type": "image/png", "X-Run": "run_1"},
        "cookies": ["a=1; Path=/", "b=2"],
        "body": base64.b64encode(b"\x89PNG").decode(),
        "isBase64Encoded": True,
    }

    answer = http.post("/agent/v1/x")

    assert (answer.status_code, answer.content) == (201, b"\x89PNG")
    assert (answer.headers["content-type"], answer.headers["x-run"]) == ("image/png", "run_1")
    assert answer.headers.get_list("set-cookie") == ["a=1; Path=/", "b=2"]


def test_an_answer_without_a_status_is_the_body(http: httpx.Client, functions: Functions) -> None:
    functions.answer = {"runs": []}

    answer = http.post("/agent/v1/x")

    assert (answer.status_code, answer.json()) == (200, {"runs": []})
    assert answer.headers["content-type"] == "application/json"


def fails(functions: Functions) -> None:
    functions.error = "Unhandled"


def answers_without_sense(functions: Functions) -> None:
    functions.answer = {"statusCode": "fine"}


def answers_with_a_strange_body(functions: Functions) -> None:
    functions.answer = {"statusCode": 200, "body": {"not": "a string"}}


@pytest.mark.parametrize("behave", [fails, answers_without_sense, answers_with_a_strange_body])
def test_a_function_that_fails_is_an_internal_error(
    http: httpx.Client, functions: Functions, behave: Callable[[Functions], None]
) -> None:
    behave(functions)

    answer = http.post("/agent/v1/x")

    assert (answer.status_code, answer.json()) == (500, {"message": "Internal Server Error"})


def test_a_function_that_takes_too_long_is_unavailable(http: httpx.Client, functions: Functions) -> None:
    functions.until.clear()

    answer = http.post("/slow")

    assert (answer.status_code, answer.json()) == (503, {"message": "Service Unavailable"})


def test_a_request_over_ten_megabytes_is_refused(http: httpx.Client, functions: Functions) -> None:
    answer = http.post("/agent/v1/x", content=b"x" * 10_000_001)

    assert answer.status_code == 413
    assert functions.called == []


def test_an_event_over_six_megabytes_is_refused(http: httpx.Client, functions: Functions) -> None:
    answer = http.post("/agent/v1/x", content=b"x" * 7_000_000)

    assert answer.status_code == 413
    assert functions.called == []


def test_the_address_is_known_before_it_answers(functions: Functions) -> None:
    front = HttpFront(functions)
    address = front.url

    front.serve(HttpApi.of("api123", [Route("GET /x", "x")]))

    assert httpx.get(f"{address}/x", trust_env=False).status_code == 200
    front.close()


def test_closing_leaves_no_thread_even_with_an_idle_connection(functions: Functions) -> None:
    before = set(threading.enumerate())
    front = HttpFront(functions)
    front.serve(HttpApi.of("api123", [Route("GET /x", "x")]))
    with httpx.Client(trust_env=False) as client:
        client.get(f"{front.url}/x")
        front.close()

    assert set(threading.enumerate()) == before


def test_a_route_key_must_be_one() -> None:
    with pytest.raises(ValueError, match="FETCH /x"):
        Route("FETCH /x", "x")
