"""The description of the API in a real browser."""

import json
import unittest

from browser import DESK, PHONE, URL, BrowserTest, expect


class Documentation(BrowserTest):
    def test_every_operation_is_described_and_leads_back_to_the_playground(self):
        page = self.open("/docs/")
        told = page.request.get(URL + "/openapi.json").json()
        operations = sum(len(methods) for methods in told["paths"].values())
        expect(page.locator(".operation")).to_have_count(operations)
        expect(page.locator("#links li")).to_have_count(operations)
        self.assertEqual(page.title(), "Lexiform API")
        self.assertNotIn("swagger", page.content().lower())
        chat = page.locator("#post-v1-chat-completions")
        chat.get_by_text("Fields of the request").click()
        expect(chat.locator(".name", has_text="response_format").first).to_be_visible()
        chat.get_by_text("Fields of response_format").click()
        expect(chat.locator(".fields .fields .name", has_text="json_schema").first).to_be_visible()
        page.get_by_role("link", name="Playground").click()
        expect(page.locator("#write")).to_be_visible()

    def test_an_address_without_its_last_slash_leads_there(self):
        page = self.open("/docs")
        self.assertEqual(page.url, URL + "/docs/")
        expect(page.locator("#title")).to_have_text("Lexiform API")

    def test_operations_can_be_found_and_linked(self):
        page = self.open("/docs/#post-v1-verify")
        expect(page.locator("#post-v1-verify")).to_be_in_viewport()
        page.locator("#search").fill("lint")
        expect(page.locator(".operation:visible")).to_have_count(1)
        page.locator("#search").fill("nothing like this")
        expect(page.locator("#nothing")).to_be_visible()

    def test_an_example_can_be_sent(self):
        page = self.open("/docs/", asks_wrong=(400,))
        lint = page.locator("#post-v1-grammars-lint")
        lint.get_by_role("button", name="Send").click()
        expect(lint.locator(".status")).to_contain_text("200")
        self.assertIn("valid", json.loads(lint.locator("pre.code").inner_text()))
        lint.locator("textarea").fill("{}")
        lint.get_by_role("button", name="Send").click()
        expect(lint.locator(".status.bad")).to_contain_text("400")

    def test_a_server_with_keys_is_asked_with_the_key_of_this_tab(self):
        page = self.open("/docs/", asks_wrong=(401,))
        self.guard(page, "s3cret")
        models = page.locator("#get-v1-models")
        models.get_by_text("Send it").click()
        models.get_by_role("button", name="Send").click()
        page.get_by_label("API key", exact=True).fill("s3cret")
        page.get_by_role("button", name="Use this key").click()
        expect(models.locator(".status")).to_contain_text("200")
        expect(page.get_by_role("button", name="Forget the API key")).to_be_visible()

    def test_nothing_is_hard_to_read_or_out_of_reach(self):
        for scheme in ("light", "dark"):
            for size in (DESK, PHONE):
                with self.subTest(scheme=scheme, width=size["width"]):
                    page = self.open("/docs/", size=size, color_scheme=scheme)
                    page.locator("#post-v1-chat-completions").get_by_text("Fields of the request").click()
                    self.assert_accessible(page)
                    self.assert_fits(page)


if __name__ == "__main__":
    unittest.main()
