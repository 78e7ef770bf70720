"""The page in a real browser: a question, its answer as it streams, its citations, its rating."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hornbeam.serve.keys import KeyRing
from hornbeam.store.question_log import QuestionLog
from support.browser import watched_page
from support.scripted_model import ScriptedModel
from support.serving import QUESTION, running

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script> [1].'


def ask(page: Page, question: str) -> None:
    page.get_by_label("What would you like to know?").fill(question)
    page.keyboard.press("Enter")


def test_an_answer_streams_and_its_citation_shows_the_marked_span(browser: Browser, index: Path) -> None:
    model = ScriptedModel(lambda request: "She discovered polonium there, in Paris [1].", pause=0.05)
    with running(index, model) as (url, _), watched_page(browser, url) as page:
        page.goto(url)
        # Every length that the answer had on the way.
        page.evaluate(
            """() => { window.lengths = new Set(); new MutationObserver(() => {
                const answer = document.querySelector('.answer');
                if (answer) window.lengths.add(answer.textContent.length);
            }).observe(document.body, {childList: true, subtree: true, characterData: true}); }"""
        )
        ask(page, QUESTION)
        page.wait_for_selector(".answer-foot:not([hidden])")
        assert "She discovered polonium there, in Paris" in page.locator(".answer").inner_text()
        assert page.evaluate("window.lengths.size") > 3
        assert page.locator(".evidence-card").count() > 0
        assert page.locator("#announcements").inner_text() == "The answer is ready."
        page.get_by_role("button", name="Show evidence 1 in its document", exact=True).click()
        mark = page.locator("dialog mark")
        mark.wait_for()
        cited = page.locator(".is-cited .evidence-text").first.inner_text()
        assert mark.inner_text().split() == cited.split()
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")


def test_a_follow_up_carries_the_conversation(browser: Browser, index: Path) -> None:
    with running(index) as (url, _), watched_page(browser, url) as page:
        bodies: list[dict[str, Any]] = []
        page.on("request", lambda one: one.url.endswith("/ask") and bodies.append(one.post_data_json))
        page.goto(url)
        for number, question in enumerate((QUESTION, "And in Paris?"), 1):
            ask(page, question)
            page.locator(".answer-foot:not([hidden])").nth(number - 1).wait_for()
        assert bodies[0]["history"] == []
        assert bodies[1]["history"] == [{"question": QUESTION, "answer": "Polonium."}]
        page.get_by_role("button", name="New conversation").click()
        assert page.locator(".exchange").count() == 0


def test_what_model_and_documents_say_is_text_and_nothing_else(browser: Browser, index: Path) -> None:
    with (
        running(index, ScriptedModel(lambda request: HOSTILE)) as (url, _),
        watched_page(browser, url) as page,
    ):
        page.goto(url)
        ask(page, QUESTION + HOSTILE)
        page.wait_for_selector(".answer-foot:not([hidden])")
        assert "<script>window.hacked=1</script>" in page.locator(".question").inner_text()
        assert "<img src=x" in page.locator(".answer").inner_text()
        assert page.locator(".exchange img, .exchange script").count() == 0
        assert page.evaluate("window.hacked") is None


def test_a_plan_is_shown_with_its_answers(browser: Browser, index: Path) -> None:
    asked = {"event": "question", "question": "q", "standalone": "q", "engine": "plan", "reason": ""}
    plan = [
        {"number": n, "question": f"part <b>{n}</b>", "level": "fact", "types": [], "depends_on": []}
        for n in (1, 2)
    ]
    told = [
        asked,
        {"event": "plan", "sub_questions": plan},
        {"event": "sub_question_started", "number": 1, "question": "part <b>1</b>"},
        {
            "event": "sub_question_finished",
            "number": 1,
            "question": "part <b>1</b>",
            "answer": "Warsaw",
            "labels": [],
        },
        {"event": "sub_question_finished", "number": 2, "question": "part 2", "answer": "", "labels": []},
        {
            "event": "step",
            "number": 1,
            "action": "search",
            "query": "rivers",
            "new_evidence": 3,
            "reason": "",
        },
        {"event": "something that comes later"},
        {"event": "error", "message": "the model is gone"},
    ]
    stream = "".join(f"event: {one['event']}\ndata: {json.dumps(one)}\n\n" for one in told)
    with running(index) as (url, _), watched_page(browser, url) as page:
        page.route("**/ask", lambda route: route.fulfill(content_type="text/event-stream", body=stream))
        page.goto(url)
        ask(page, "q")
        page.get_by_text("the model is gone").wait_for()
        said = page.locator(".plan").inner_text()
        assert "part <b>1</b>" in said
        assert "Warsaw" in said
        assert "the evidence holds no answer" in said
        assert "Looked again for “rivers”: 3 new pieces" in said


def test_a_rating_with_a_note_is_kept(browser: Browser, index: Path) -> None:
    with running(index) as (url, _), watched_page(browser, url) as page:
        page.goto(url)
        ask(page, QUESTION)
        page.get_by_role("button", name="A bad answer").click()
        page.get_by_label("What was good or wrong?").fill("too short")
        page.keyboard.press("Enter")
        page.locator(".feedback").get_by_text("Thank you").wait_for()
    (entry,) = QuestionLog(index).entries()
    assert (entry.question, entry.rating, entry.note) == (QUESTION, "down", "too short")


def test_a_server_with_keys_asks_for_one(
    browser: Browser, index: Path, operator: tuple[KeyRing, str]
) -> None:
    ring, secret = operator
    with (
        running(index, keys=ring) as (url, _),
        watched_page(browser, url, expected=("401",)) as page,
    ):
        page.goto(url)
        page.get_by_text("This server asks for an API key.").wait_for()
        page.get_by_label("API key", exact=True).and_(page.locator("input")).fill("hb_guess")
        page.keyboard.press("Enter")
        page.get_by_text("This key is not known to the server.").wait_for()
        page.locator("#key-field").fill(secret)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="What would you like to know?").wait_for()
        assert (
            page.evaluate("Object.keys(localStorage).some((one) => localStorage[one].startsWith('hb_'))")
            is False
        )


def test_a_question_is_typed_before_the_scripts_are_there(browser: Browser, index: Path) -> None:
    with running(index) as (url, _), watched_page(browser, url) as page:
        held: list[Route] = []
        page.route("**/hornbeam.js", lambda route: held.append(route))
        page.goto(url, wait_until="commit")
        field = page.locator("#question")
        field.type("What did Curie ")
        assert page.locator(".send").is_disabled()
        assert len(held) == 1
        held[0].continue_()
        page.locator(".send:not([disabled])").wait_for()
        assert page.evaluate("document.activeElement.id") == "question"
        page.keyboard.type("discover in Warsaw?")
        assert field.input_value() == "What did Curie discover in Warsaw?"
        page.keyboard.press("Enter")
        page.locator(".exchange .question").get_by_text("What did Curie discover in Warsaw?").wait_for()
        assert field.input_value() == ""


def test_the_field_does_not_flash_under_another_address(browser: Browser, index: Path) -> None:
    with running(index) as (url, _), watched_page(browser, url) as page:
        held: list[Route] = []
        page.route("**/hornbeam.js", lambda route: held.append(route))
        page.goto(f"{url}/#/versions", wait_until="commit")
        page.locator("#question").wait_for(state="attached")
        assert not page.locator("#question").is_visible()
        while not held:
            page.wait_for_timeout(20)
        held[0].continue_()
        page.wait_for_selector("main.view-versions")
        page.goto(f"{url}/#/ask")  # from there the field is one of its own, and empty
        page.locator(".send:not([disabled])").wait_for()
        assert page.locator("#question").count() == 1
        assert page.locator("#question").input_value() == ""
