"""The page in a real browser: builds, versions, the schema."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hornbeam.schema.proposals import Example, Place, Proposal
from hornbeam.serve.builds import Builds
from hornbeam.serve.keys import KeyRing
from hornbeam.store.ledger import Ledger
from hornbeam.store.versions import current_version_id
from support.browser import watched_page
from support.building_pretence import STOPS_IN_ORDER
from support.serving import FIRST, SECOND, running, schema_by_hand

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_a_build_is_started_watched_and_stopped(
    browser: Browser, index: Path, operator: tuple[KeyRing, str]
) -> None:
    ring, secret = operator
    with (
        running(index, keys=ring, sources={"more": "/nowhere"}) as (url, server),
        watched_page(browser, url, key=secret) as page,
    ):
        server.builds = Builds(server.settings, (sys.executable, "-c", STOPS_IN_ORDER))
        page.goto(f"{url}/#/builds")
        page.get_by_label("Documents").select_option("more")
        page.get_by_role("button", name="Start").click()
        page.get_by_text("5 of 10 chunks").wait_for()
        running_card = page.locator(".is-running")
        assert "Read documents" in running_card.inner_text()
        assert "2 chunks/s" in running_card.inner_text()
        assert "2.5 s" in running_card.inner_text()
        assert "0.0125" in running_card.inner_text()
        bar = page.get_by_role("progressbar", name="Extract the graph")
        assert (bar.get_attribute("max"), bar.get_attribute("value")) == ("10", "5")
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_role("cell", name="stopped").wait_for()
        assert page.get_by_role("cell", name="more").is_visible()
        assert page.get_by_role("button", name="Start").is_visible()


def test_versions_are_compared_promoted_and_rolled_back(
    browser: Browser, index: Path, operator: tuple[KeyRing, str]
) -> None:
    ring, secret = operator
    with running(index, keys=ring) as (url, _), watched_page(browser, url, key=secret) as page:
        page.goto(f"{url}/#/versions")
        first, second = (page.locator(f"[data-version={one}]") for one in (FIRST, SECOND))
        first.get_by_text("served", exact=True).wait_for()
        second.get_by_text("1 of 1 gates passed").wait_for()
        second.get_by_role("button", name="Compare").click()
        page.get_by_text("The two hold the same.").wait_for()
        page.keyboard.press("Escape")
        second.get_by_role("button", name="Promote").click()
        second.get_by_text("served", exact=True).wait_for()
        assert current_version_id(index) == SECOND
        page.get_by_role("button", name="Roll back").click()
        first.get_by_text("served", exact=True).wait_for()
        assert current_version_id(index) == FIRST


def test_a_proposed_type_is_accepted_and_undone(
    browser: Browser, index: Path, operator: tuple[KeyRing, str]
) -> None:
    ring, secret = operator
    seen = Example(chunk_id="d1c0", places=(Place(start=0, end=6, surface="radium"),), confidence=0.9)
    proposed = Proposal(
        kind="entity", name="substance", support=5, sightings=7, confidence=0.8, examples=(seen,)
    )
    weak = Proposal(kind="entity", name="mood", support=1, sightings=1, confidence=0.1)
    with Ledger(index, create=True) as ledger, ledger.transaction():
        ledger.types.replace_proposals(
            schema_by_hand().to_json(), [one.model_dump_json() for one in (proposed, weak)]
        )
    with running(index, keys=ring) as (url, _), watched_page(browser, url, key=secret) as page:
        page.goto(f"{url}/#/schema")
        card = page.locator(".proposal", has_text="substance")
        card.get_by_text("radium").wait_for()
        page.get_by_text("Did not pass (1)").click()
        assert "confidence 0.10 below" in page.locator(".proposal", has_text="mood").inner_text()
        card.get_by_role("button", name="Accept", exact=True).click()
        page.get_by_text("The next build uses version 2").wait_for()
        assert page.locator(".proposal", has_text="substance").count() == 0
        page.get_by_role("button", name="Undo").click()
        page.locator(".proposal", has_text="substance").wait_for()


def test_without_the_scope_it_is_said_and_nothing_can_be_pressed(browser: Browser, index: Path) -> None:
    with running(index) as (url, _), watched_page(browser, url) as page:
        for view in ("builds", "versions", "schema"):
            page.goto(f"{url}/#/{view}")
            page.get_by_text("To do this you need an API key").wait_for()
        page.goto(f"{url}/#/versions")
        page.get_by_role("button", name="Promote").wait_for()
        assert page.get_by_role("button", name="Promote").is_disabled()
        assert page.get_by_role("button", name="Roll back").is_disabled()
