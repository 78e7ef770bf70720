"""The page in a real browser: the knowledge tree by keyboard, its picture, search, filters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from support.browser import watched_page
from support.serving import running

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_the_tree_is_walked_by_keyboard_from_communities_to_attributes(browser: Browser, index: Path) -> None:
    with running(index) as (url, _), watched_page(browser, url) as page:
        page.goto(f"{url}/#/explore")
        top = page.get_by_role("treeitem", name="Poland and science, 4")
        top.wait_for()
        top.focus()
        page.keyboard.press("ArrowRight")
        page.get_by_role("treeitem", name="Discovery, 2").wait_for()
        page.keyboard.press("ArrowRight")  # into it: its keywords come first
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Discovery, 2"
        page.keyboard.press("ArrowRight")
        curie = page.get_by_role("treeitem", name="Marie Curie, person")
        curie.wait_for()
        curie.focus()
        page.keyboard.press("ArrowRight")
        page.get_by_role("treeitem", name="Marie Curie — discovered → polonium").wait_for()
        assert page.get_by_role("treeitem", name="workplace: Paris").is_visible()
        page.keyboard.press("ArrowLeft")
        assert not page.get_by_role("treeitem", name="workplace: Paris").is_visible()
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Marie Curie").wait_for()
        assert "Paris" in page.locator(".detail .attributes").inner_text()
        assert curie.get_attribute("aria-selected") == "true"
        page.get_by_role("button", name="Show where it stands").click()
        page.locator("dialog mark").wait_for()
        assert "Curie" in page.locator("dialog mark").inner_text()


def test_the_picture_follows_what_is_chosen_and_the_filters(browser: Browser, index: Path) -> None:
    with running(index) as (url, _), watched_page(browser, url) as page:
        page.goto(f"{url}/#/explore/entity/e1")
        page.wait_for_selector(".graph canvas")
        box = page.locator(".graph canvas").first.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) > 200
        page.get_by_role("heading", name="Marie Curie").wait_for()
        with page.expect_response(lambda one: "/tree?" in one.url and "types=person" in one.url):
            page.get_by_role("button", name="Discovery").click()
            page.locator(".filters summary").click()
            page.get_by_label("person").check()
        page.get_by_text("1 of 1 shown, the best connected first").wait_for()


def test_an_entity_is_found_while_it_is_typed(browser: Browser, index: Path) -> None:
    with running(index) as (url, _), watched_page(browser, url) as page:
        page.goto(f"{url}/#/explore")
        page.get_by_role("treeitem").first.wait_for()
        page.keyboard.press("/")
        page.keyboard.type("war")
        page.get_by_role("option", name="Warsaw").wait_for()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Warsaw").wait_for()
        assert page.url.endswith("#/explore/entity/e2")
        page.get_by_role("button", name="Marie Curie").click()
        page.get_by_role("heading", name="Marie Curie").wait_for()


_SLOW_FRAMES = """window.requestAnimationFrame = (told) => setTimeout(() => told(performance.now()), 70);
    window.cancelAnimationFrame = clearTimeout;"""


def test_links_and_names_are_left_out_while_a_slow_picture_is_moved(browser: Browser, index: Path) -> None:
    hidden = """() => ['edges', 'labels', 'nodes'].map(
        (layer) => getComputedStyle(document.querySelector(`.sigma-${layer}`)).visibility)"""
    with running(index) as (url, _), watched_page(browser, url) as page:
        page.add_init_script(_SLOW_FRAMES)
        page.goto(f"{url}/#/explore/entity/e1")
        page.get_by_role("heading", name="Marie Curie").wait_for()
        page.wait_for_selector(".sigma-mouse")
        box = page.locator(".graph").bounding_box()
        assert box is not None
        left, top = box["x"] + box["width"] / 2 + 60, box["y"] + box["height"] / 2 + 60
        assert page.evaluate(hidden) == ["visible"] * 3
        page.mouse.move(left, top)
        page.mouse.down()
        for step in range(400):
            page.mouse.move(left + step % 20, top + step % 10)
            if page.evaluate(hidden) != ["visible"] * 3:
                break
        assert page.evaluate(hidden) == ["hidden", "hidden", "visible"]
        page.mouse.up()
        assert page.evaluate(hidden) == ["visible"] * 3
