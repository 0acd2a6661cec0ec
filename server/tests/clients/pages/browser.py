"""A real browser for the tests of the pages: Chromium without a window, driven by playwright.

The browser is the system's own (`chromium` in Debian); playwright's downloads are not used. Everything that a page asks
for or complains about is written down, and at the end of every test there must be nothing foreign and no complaint.
"""

import os
import shutil
import unittest

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

URL = os.environ.get("LEXIFORM_URL", "http://127.0.0.1:8000")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 400, "height": 800}
# Milliseconds. A first answer of a build without optimisation may take its time on a machine that does much else; nothing waits so
# long that comes at all.
PATIENCE = 240_000


@unittest.skipUnless(BROWSER, "there is no chromium on the PATH (package chromium)")
class BrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.playwright = sync_playwright().start()
        cls.addClassCleanup(cls.playwright.stop)
        # A container rarely allows Chromium the namespaces of its sandbox; the pages are our own.
        arguments = ["--no-sandbox", "--disable-gpu"]
        cls.browser = cls.playwright.chromium.launch(executable_path=BROWSER, args=arguments, timeout=PATIENCE)
        cls.addClassCleanup(cls.browser.close)
        expect.set_options(timeout=PATIENCE)

    def open(self, path="/", size=DESK, asks_wrong=(), **context):
        """A page of this size. The statuses in `asks_wrong` are part of the test and no complaint."""
        context = self.browser.new_context(viewport=size, permissions=["clipboard-read", "clipboard-write"], **context)
        self.addCleanup(context.close)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        self.foreign, self.complaints, self.asked = [], [], []
        own = (URL + "/", "data:", "blob:")
        page.on("request", lambda it: self.asked.append(it) if it.url.startswith(own) else self.foreign.append(it.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda it: self.noted(it.type, it.text, asks_wrong))
        page.on("response", lambda it: it.status >= 400 and it.status not in asks_wrong
                and self.complaints.append(f"{it.status} {it.url}"))
        page.goto(URL + path, wait_until="networkidle")
        return page

    def noted(self, kind, text, asks_wrong):
        # The browser itself writes the status of a refused request to the console.
        expected = any(f"status of {status}" in text for status in asks_wrong)
        if kind == "error" and not expected:
            self.complaints.append(text)

    def tearDown(self):
        self.assertEqual(getattr(self, "foreign", []), [], "the page asked somebody else")
        self.assertEqual(getattr(self, "complaints", []), [])

    def guard(self, page, secret):
        """Lets the API answer to this key alone, as a server with keys does."""
        refusal = {"error": {"message": "no key", "type": "authentication_error", "param": None, "code": "invalid_api_key"}}

        def answer(route):
            known = route.request.headers.get("authorization") == f"Bearer {secret}"
            route.continue_() if known else route.fulfill(status=401, json=refusal)

        page.route("**/v1/**", answer)

    def still(self, page):
        """Waits until nothing that the page says is about to be replaced by what is found out just now."""
        expect(page.locator("[aria-busy=true]")).to_have_count(0)

    def copied(self, page, name):
        """Presses a button that copies; what is on the clipboard then. The button says so for a moment only, so it is watched from before."""
        button = page.get_by_role("button", name=name, exact=True)
        said = button.evaluate_handle("""it => {
            const said = [];
            new MutationObserver(() => said.push(it.textContent)).observe(it, {childList: true});
            return said;
        }""")
        button.click()
        page.wait_for_function("said => said.includes('Copied')", arg=said)
        expect(button).to_be_visible()
        return page.evaluate("navigator.clipboard.readText()")

    def asked_for(self, path):
        """The bodies of the requests for a path so far."""
        return [it.post_data_json for it in self.asked if it.url == URL + path]

    def assert_fits(self, page):
        wide, room = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        self.assertLessEqual(wide, room, "the page is wider than the window")

    def assert_accessible(self, page):
        """No rule of axe is broken; contrast is among them."""
        found = Axe().run(page).response["violations"]
        told = [(it["id"], [node["html"][:120] for node in it["nodes"]][:3]) for it in found]
        self.assertEqual(told, [])
