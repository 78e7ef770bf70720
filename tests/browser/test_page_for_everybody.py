"""The page in a real browser: narrow screens, two languages, light and dark, names for screen readers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hornbeam.serve import page_routes
from support.browser import watched_page
from support.serving import QUESTION, running

if TYPE_CHECKING:
    from playwright.sync_api import Browser

VIEWS = ("ask", "explore", "builds", "versions", "schema")
#: Contrast of text and ground by WCAG 2, of what is set as text of its own.
CONTRAST = """() => {
    const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
    const ground = (element) => {
        for (; element; element = element.parentElement) {
            const colour = numbers(getComputedStyle(element).backgroundColor);
            if (colour.length < 4 || colour[3] > 0.99) return colour;
        }
        return [255, 255, 255];
    };
    const poor = [];
    for (const element of document.querySelectorAll('body *')) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        const shown = element.checkVisibility({opacityProperty: true});
        if (!own || !shown || element.closest('select, noscript, .skip, :disabled')) continue;
        const colours = [numbers(getComputedStyle(element).color), ground(element)];
        const [a, b] = colours.map(light).sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        const what = `${element.className} ${element.textContent.slice(0, 30)}`;
        if (ratio < 4.5) poor.push(`${what}: ${ratio.toFixed(2)}`);
    }
    return poor;
}"""
NAMELESS = """() => [...document.querySelectorAll(
        'button, a, input, select, textarea, progress, [role=tree]')]
    .filter((one) => one.checkVisibility() && !one.getAttribute('aria-label'))
    .filter((one) => !one.labels?.length && !(one.matches('button, a') && one.textContent.trim()))
    .map((one) => one.outerHTML.slice(0, 120))"""


def test_no_view_is_wider_than_a_narrow_screen(browser: Browser, index: Path) -> None:
    narrow = {"viewport": {"width": 360, "height": 720}}
    with running(index) as (url, _), watched_page(browser, url, **narrow) as page:
        page.goto(url)
        page.get_by_label("What would you like to know?").fill(QUESTION)
        page.keyboard.press("Enter")
        page.wait_for_selector(".answer-foot:not([hidden])")
        for view in VIEWS:
            page.get_by_role("navigation", name="Views").get_by_role("link", name=view.capitalize()).click()
            page.wait_for_selector(f".view-{view} > *")
            page.wait_for_load_state("networkidle")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, view
        bar = page.locator(".views").bounding_box()
        assert bar is not None
        assert bar["y"] + bar["height"] == pytest.approx(720, abs=1)


def test_both_languages_say_the_same_things(browser: Browser, index: Path) -> None:
    with running(index) as (url, _), watched_page(browser, url) as page:
        page.goto(url)
        page.get_by_role("button", name="Switch the language to Chinese").click()
        page.get_by_role("heading", name="您想知道什么？").wait_for()
        assert page.get_attribute("html", "lang") == "zh-Hans"
        page.reload()
        page.get_by_role("link", name="提问").wait_for()
        both = page.evaluate(
            "() => {"
            + " ".join(f"const {name} = {_strings(name)};" for name in ("en", "zh"))
            + """
                const holes = (text) => (text.match(/\\{\\w+\\}/g) ?? []).sort().join();
                return {
                    keys: [Object.keys(en), Object.keys(zh)],
                    differ: Object.keys(en).filter((key) => holes(en[key]) !== holes(zh[key] ?? '')),
                };
            }"""
        )
        assert both["keys"][0] == both["keys"][1]
        assert both["differ"] == []


def _strings(name: str) -> str:
    text = (Path(page_routes.__file__).parent / "page" / "strings" / f"{name}.js").read_text("utf-8")
    return text.removeprefix(f"export const {name} = ").strip().removesuffix(";")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_and_everything_has_a_name(browser: Browser, index: Path, scheme: str) -> None:
    with running(index) as (url, _), watched_page(browser, url, color_scheme=scheme) as page:
        page.goto(url)
        page.get_by_label("What would you like to know?").fill(QUESTION)
        page.keyboard.press("Enter")
        page.wait_for_selector(".answer-foot:not([hidden])")
        for view in VIEWS:
            page.goto(f"{url}/#/{view}")
            page.wait_for_selector(f".view-{view} > *")
            page.wait_for_load_state("networkidle")
            assert page.evaluate(NAMELESS) == [], view
            assert page.evaluate(CONTRAST) == [], view
        ground = "getComputedStyle(document.body).backgroundColor"
        before = page.evaluate(ground)
        page.get_by_role("button", name="Light or dark").click()
        assert page.evaluate(ground) != before


def test_views_and_help_are_reached_by_keyboard(browser: Browser, index: Path) -> None:
    with running(index) as (url, _), watched_page(browser, url) as page:
        page.goto(url)
        page.wait_for_selector(".chip")
        for number, view in enumerate(VIEWS, 1):
            page.keyboard.press(f"Alt+{number}")
            page.wait_for_selector(f".view-{view}")
        page.locator("main").focus()
        page.keyboard.press("?")
        page.get_by_role("dialog", name="Keyboard").wait_for()
        page.keyboard.press("Escape")
        assert page.get_by_role("dialog").count() == 0
