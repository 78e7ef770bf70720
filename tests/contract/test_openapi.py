"""Requests made from the server's OpenAPI document are answered as it says, whatever they hold."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import checks

from hornbeam.serve.app import create_app
from hornbeam.serve.builds import Builds
from hornbeam.serve.keys import KeyRing
from hornbeam.serve.server import Server
from hornbeam.store.promotions import promote
from support.serving import FIRST, SECOND, running, write_version

#: Of every operation.
_EXAMPLES = 6
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
_ENDS_AT_ONCE = "import sys; sys.exit('error: this is no build')"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a server, and headers that may do everything there."""
    folder: Path = tmp_path_factory.mktemp("contract")
    index = folder / "index"
    for version_id in (FIRST, SECOND):
        write_version(index, version_id)
    promote(index, FIRST)
    ring = KeyRing(folder / "keys.json")
    _, secret = ring.add("operator", [], ["*"])
    with running(index, keys=ring, question_log="all") as (url, server):
        server.builds = Builds(server.settings, (sys.executable, "-c", _ENDS_AT_ONCE))
        yield url, {"Authorization": f"Bearer {secret}"}


#: The routes are the same whatever is served, so that the tests can be counted before anything is.
DOCUMENT = schemathesis.openapi.from_dict(create_app(cast(Server, None)).openapi())
OPERATIONS = [found.ok() for found in DOCUMENT.get_all_operations()]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
@settings(
    max_examples=_EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_an_operation_answers_as_the_document_says(
    operation: Any, served: tuple[str, dict[str, str]], data: st.DataObject
) -> None:
    url, headers = served
    case = data.draw(operation.as_strategy())
    # Nearly all names that are drawn are of no index: these tell little.
    if "index" in case.path_parameters and len(str(case.path_parameters["index"])) != 1:
        case.path_parameters["index"] = "papers"
    case.call_and_validate(base_url=url, headers=headers, checks=CHECKS)


def test_the_document_has_every_route_and_examples_of_what_is_asked() -> None:
    said = DOCUMENT.raw_schema
    assert {"/v1/{index}/ask", "/v1/{index}/builds", "/v1/chat/completions", "/metrics"} <= set(said["paths"])
    forms = said["components"]["schemas"]
    assert forms["Ask"]["properties"]["question"]["examples"]
    assert forms["ChatRequest"]["examples"]
    assert "HTTPValidationError" not in forms  # a refusal has our form
