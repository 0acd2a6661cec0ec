"""The pages for people, in a real browser: Chromium without a window, driven by playwright.

The browser is the system's own (`chromium` in Debian); playwright's downloads are not used. Everything that a page asks
for or complains about is written down, and at the end of every test there must be nothing foreign and no complaint.
"""

import os
import re
import shutil
import unittest

from playwright.sync_api import expect, sync_playwright

URL = os.environ.get("LEXIFORM_URL", "http://127.0.0.1:8000")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
# A first answer of a build without optimisation may take its time on a machine that does much else.
PATIENCE = 60_000


@unittest.skipUnless(BROWSER, "there is no chromium on the PATH (package chromium)")
class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.playwright = sync_playwright().start()
        cls.addClassCleanup(cls.playwright.stop)
        # A container rarely allows Chromium the namespaces of its sandbox; the pages are our own.
        cls.browser = cls.playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        cls.addClassCleanup(cls.browser.close)
        expect.set_options(timeout=PATIENCE)

    def open(self, path, size, asks_wrong=()):
        """A page of this size. The statuses in `asks_wrong` are part of the test and no complaint."""
        page = self.browser.new_page(viewport=size)
        self.addCleanup(page.close)
        page.set_default_timeout(PATIENCE)
        self.foreign, self.complaints = [], []
        own = (URL + "/", "data:", "blob:")
        page.on("request", lambda it: it.url.startswith(own) or self.foreign.append(it.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda it: it.type == "error" and self.complaints.append(it.text))
        page.on("response", lambda it: it.status >= 400 and it.status not in asks_wrong
                and self.complaints.append(f"{it.status} {it.url}"))
        page.goto(URL + path, wait_until="networkidle")
        return page

    def tearDown(self):
        self.assertEqual(self.foreign, [], "the page asked somebody else")
        self.assertEqual(self.complaints, [])

    def assert_fits(self, page):
        wide, room = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        self.assertLessEqual(wide, room, "the page is wider than the window")

    def write(self, page):
        page.get_by_role("button", name="Write").click()
        expect(page.locator("#summary")).to_contain_text("ended by stop")

    def test_a_fault_in_a_schema_is_shown_with_its_place_while_typing(self):
        page = self.open("/", DESK)
        diagnostics = page.locator("#diagnostics")
        expect(diagnostics).to_contain_text("compiles")
        page.locator("#source").fill('{"type": "object", "properties": {"age": {"type": "integer", "minimum": "zero"}}}')
        expect(diagnostics).to_contain_text("/properties/age/minimum")
        expect(diagnostics).not_to_contain_text("compiles")
        page.locator("#source").fill('{"type": "integer"}')
        expect(diagnostics).to_contain_text("shortest text: 0")

    def test_every_kind_of_constraint_has_an_example_that_compiles(self):
        page = self.open("/", DESK)
        for kind in ("guided_regex", "ebnf", "guided_json"):
            page.locator("#kind").select_option(kind)
            expect(page.locator("#diagnostics")).to_contain_text("compiles")
        page.locator("#kind").select_option("")
        expect(page.locator("#source")).to_be_hidden()

    def test_an_answer_streams_and_each_token_tells_what_else_was_allowed(self):
        page = self.open("/", DESK)
        expect(page.locator("#diagnostics")).to_contain_text("compiles")
        self.write(page)
        text = page.locator("#output").inner_text()
        self.assertRegex(text, r'^\{"name":".*","age":\d+,"city":".*"\}$')
        kinds = page.locator("#output span").evaluate_all("all => all.map(one => one.className)")
        self.assertLessEqual(set(kinds), {"sampled", "drafted", "forced", ""})
        self.assertGreater(len(kinds), 5)
        # A first token of an object under this schema can only begin with its brace.
        page.locator("#output span").first.click()
        detail = page.locator("#detail")
        expect(detail).to_contain_text("Allowed:")
        self.assertRegex(detail.inner_text(), r"(sampled|drafted|forced); \d+ tokens allowed; the model gave it")
        self.assertIn('"{', detail.inner_text())
        self.assertEqual(page.locator("#masks rect").count(), len(kinds))
        self.assertEqual(page.locator("#times rect").count(), len(kinds))

    def test_tokens_can_be_asked_with_the_keyboard(self):
        page = self.open("/", DESK)
        self.write(page)
        page.locator("#output span").first.focus()
        expect(page.locator("#detail")).to_contain_text("tokens allowed")

    def test_a_refused_request_says_why(self):
        page = self.open("/", DESK, asks_wrong=(400,))
        page.locator("#source").fill('{"type": "strin"}')
        expect(page.locator("#diagnostics .bad")).to_be_visible()
        page.get_by_role("button", name="Write").click()
        expect(page.locator("#summary")).to_contain_text("type")
        # The browser itself writes the status of the refused request to the console.
        self.complaints = [it for it in self.complaints if "status of 400" not in it]

    def test_the_playground_fits_a_phone(self):
        page = self.open("/", PHONE)
        self.assert_fits(page)
        self.write(page)
        self.assert_fits(page)
        page.locator("#output span").first.click()
        expect(page.locator("#detail")).to_contain_text("Allowed:")
        self.assert_fits(page)

    def test_the_documentation_shows_every_operation(self):
        page = self.open("/docs/", DESK)
        told = page.request.get(URL + "/openapi.json").json()
        operations = sum(len(methods) for methods in told["paths"].values())
        expect(page.locator(".opblock")).to_have_count(operations)
        expect(page.get_by_role("heading", name=re.compile(re.escape(told["info"]["title"])))).to_be_visible()
        block = page.locator(".opblock", has_text="/v1/chat/completions").first
        block.locator("button").first.click()
        expect(block).to_contain_text("Request body")


if __name__ == "__main__":
    unittest.main()
