"""Lambda: every way to invoke a function leads to the cloud's invoker.

moto would run functions in Docker, or echo their input.
"""

from __future__ import annotations

import base64
import functools
import json
import logging
from typing import Any

from botocore.exceptions import ClientError
from moto.awslambda.exceptions import LambdaClientError
from moto.awslambda.models import LambdaFunction
from moto.awslambda.utils import get_backend
from moto.awslambda_simple.models import LambdaSimpleBackend
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils

from tensorant_local.aws.mending import Mends
from tensorant_local.aws.running import Invocation, LambdaInvoker, cloud

__all__ = ["Invocation", "LambdaInvoker", "apply", "invoke", "invoke_later", "problem_of"]

RETRIES = 2
"""Of an asynchronous invocation that failed (AWS waits one and two minutes; here it is shortened)."""

_log = logging.getLogger(__name__)
mends = Mends()
apply = mends.apply


class LambdaFailed(LambdaClientError):  # type: ignore[misc] # moto is untyped
    """Trouble of Lambda itself, not of the function."""

    code = 500

    def __init__(self, message: str) -> None:
        super().__init__("ServiceException", message)


def invoke(function_name: str, payload: bytes) -> Invocation:
    """Run the function and wait for its answer. Raises `LambdaFailed` where the invoker itself fails."""
    try:
        return cloud().invoker(function_name, payload or b"{}")
    except Exception as error:
        _log.exception("%s could not be invoked", function_name)
        raise LambdaFailed(f"{function_name} could not be invoked: {error}") from error


def invoke_later(function_name: str, payload: bytes, *, retries_left: int = RETRIES) -> None:
    """Run the function in the background; an error is tried again, then logged."""
    cloud().background.soon(functools.partial(_attempt, function_name, payload, retries_left))


def problem_of(function_name: str, payload: bytes) -> str | None:
    """Run the function; what went wrong, or None."""
    try:
        invocation = invoke(function_name, payload)
    except LambdaFailed as error:
        return str(error.message)
    return invocation.payload.decode(errors="replace") if invocation.error else None


def _attempt(function_name: str, payload: bytes, retries_left: int) -> None:
    problem = problem_of(function_name, payload)
    if problem and retries_left:
        again = functools.partial(_attempt, function_name, payload, retries_left - 1)
        cloud().background.later(cloud().invocation_retry_seconds, again)
    elif problem:
        _log.warning("%s failed for good: %s", function_name, problem)


@mends(LambdaSimpleBackend, "invoke")
def functions_only_echo(
    _original: Any,
    backend: Any,
    function_name: str,
    qualifier: str | None,
    body: Any,
    headers: Any,
    answer: Any,
) -> bytes:
    """The Lambda API, by its three types of invocation."""
    name = backend.get_function(function_name, qualifier).function_name
    payload = body.encode() if isinstance(body, str) else body or b""
    match headers.get("X-Amz-Invocation-Type", "RequestResponse"):
        case "DryRun":
            return b""
        case "Event":
            invoke_later(name, payload)
            return b""
    invocation = invoke(name, payload)
    if invocation.error:
        answer["x-amz-function-error"] = invocation.error
    answer["x-amz-log-result"] = base64.b64encode(b"").decode()
    return invocation.payload


@mends(LambdaFunction, "invoke")
def callers_inside_moto_need_docker(
    _original: Any, function: Any, body: str, _request_headers: Any, response_headers: Any
) -> bytes:
    """What other services of moto call."""
    invocation = invoke(function.function_name, body.encode())
    if invocation.error:
        response_headers["x-amz-function-error"] = invocation.error
    return invocation.payload


@mends(lambda_eval_utils, "_invoke_lambda_function")
def state_machines_invoke_over_http(
    _original: Any, parameters: dict[str, Any], region: str, state_credentials: Any
) -> dict[str, Any]:
    """`lambda:invoke` tasks. A client per task cost more than the task."""
    account = state_credentials.role_arn.split(":")[4]
    try:
        function = get_backend(account, region).get_function(
            parameters["FunctionName"], parameters.get("Qualifier")
        )
        invocation = invoke(function.function_name, parameters.get("Payload", b""))
    except LambdaClientError as error:
        raise _client_error(error) from error
    answer = {"StatusCode": 200, "ExecutedVersion": "$LATEST", "Payload": _parsed(invocation.payload)}
    return answer | ({"FunctionError": invocation.error} if invocation.error else {})


def _parsed(payload: bytes) -> Any:
    try:
        return json.loads(payload or b"null")
    except json.JSONDecodeError:
        return payload.decode(errors="replace")


def _client_error(error: Any) -> ClientError:
    response: Any = {
        "Error": {"Code": error.error_type, "Message": error.message},
        "ResponseMetadata": {"HTTPStatusCode": error.code, "RequestId": "embedded"},
    }
    return ClientError(response, "Invoke")
