"""The playground in a real browser: what it says is true of the run that it shows, and all of it can be reached."""

import itertools
import json
import re
import time
import unittest

from browser import DESK, PATIENCE, PHONE, URL, BrowserTest, expect

# What the service says of a second monitor that leaves no token, and of one that does not compile.
REFUSED, WRONG = '"monitors[1]" allows no token', "monitors[1].pattern"
LOSSY = """{"type": "object", "required": ["tags"],
 "properties": {
  "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
  "10": {"type": "integer", "minimum": 12345678901234567890}
 }, "additionalProperties": false}"""
SUPPORT = '{\n  "type": "strin",\n  "properties": {\n    "age": {"minimum": "zero"}\n  },\n  "requird": []\n}'


class Playground(BrowserTest):
    def open(self, *path, **more):
        """A page that has been filled and has looked at its source."""
        page = super().open(*path, **more)
        self.still(page)
        return page

    def example(self, page, name):
        page.get_by_role("button", name=name, exact=True).click()
        self.still(page)
        expect(page.locator("#verdict.good")).to_be_visible()

    def source(self, page, text):
        """Fills in a source; what is told of it is there, and moves no button any more."""
        page.locator("#source").fill(text)
        self.still(page)

    def regex(self, page, pattern):
        page.get_by_text("Regex", exact=True).click()
        self.source(page, pattern)
        expect(page.locator("#verdict")).to_contain_text("Compiles")

    def press(self, page):
        page.get_by_role("button", name="Write", exact=True).click()

    def write(self, page, press=None):
        self.answered(page, press)
        # The page takes it back as soon as it asks: what stands there now is of this request.
        self.assertEqual(page.locator("#failure").text_content(), "")
        expect(page.locator("#announcement")).to_contain_text("Done")

    def answered(self, page, press=None):
        """Writes, to the end of that request and of no earlier one, whether it is answered well or not."""
        with page.expect_request(URL + "/v1/chat/completions"):
            (press or self.press)(page)
        expect(page.locator("#write")).to_have_text("Write")

    def tokens(self, page):
        return page.locator("#columns [role=option]")

    def text(self, page):
        return "".join(page.locator("#columns [role=option]").all_text_contents())

    # The source and what is wrong with it.

    def test_problems_stand_in_the_order_of_the_text_and_lead_to_their_place(self):
        page = self.open()
        self.source(page, SUPPORT)
        problems = page.locator("#problems button")
        expect(problems).to_have_count(3)
        self.assertEqual([text.split()[:2] for text in problems.all_inner_texts()], [["line", "2"], ["line", "4"], ["line", "6"]])
        expect(page.locator("#verdict")).to_contain_text("3 problems")
        expect(page.locator(".numbers .bad")).to_have_text(["2", "4", "6"])
        problems.nth(1).click()
        chosen = page.locator("#source").evaluate("it => it.value.slice(it.selectionStart, it.selectionEnd)")
        self.assertEqual(chosen, '"minimum": "zero"')
        page.locator("#source").fill('{"type": "integer"}')
        expect(page.locator("#sample")).to_have_text("Shortest text: 0")

    def test_what_does_not_compile_is_not_sent_and_said_once(self):
        page = self.open()
        page.locator("#source").fill(SUPPORT)
        # At once, when nothing is told of the source yet, and by a key: the button moves as soon as there is.
        page.locator("#source").press("Control+Enter")
        expect(page.locator("#announcement")).to_contain_text("nothing was sent")
        self.assertEqual(self.asked_for("/v1/chat/completions"), [])
        expect(page.locator("#source")).to_be_focused()
        expect(page.locator("#failure")).to_be_hidden()
        self.assertEqual(page.locator("#problems").inner_text().count('"strin"'), 1)
        self.assertNotIn("strin", page.locator("#answer").inner_text())

    def test_three_hundred_problems_leave_the_controls_on_the_page(self):
        page = self.open()
        height = page.evaluate("document.documentElement.scrollHeight")
        properties = {f"p{number}": {"type": "strin"} for number in range(300)}
        page.locator("#source").fill(json.dumps({"properties": properties}, indent=1))
        expect(page.locator("#verdict")).to_contain_text("300 problems")
        self.assertLess(page.evaluate("document.documentElement.scrollHeight"), height + 300)
        expect(page.locator("#write")).to_be_in_viewport()
        page.locator("#problems button").last.click()
        chosen = page.locator("#source").evaluate("it => it.value.slice(0, it.selectionStart).split('\\n').length")
        self.assertGreater(chosen, 900)

    def test_every_example_compiles_and_no_request_uses_a_deprecated_field(self):
        page = self.open()
        names = page.locator("#examples button").all_inner_texts()
        kinds = set()
        for name in names:
            self.example(page, name)
            kinds.add(page.locator("#kinds input:checked").input_value())
            self.write(page)
        self.assertEqual(kinds, {"schema", "regex", "ebnf", "tools"})
        bodies = json.dumps([*self.asked_for("/v1/chat/completions"), *self.asked_for("/v1/grammars/lint")])
        self.assertNotIn("guided_", bodies)

    def test_other_grammars_and_empty_sources_are_told_of(self):
        page = self.open()
        page.get_by_text("Any grammar", exact=True).click()
        self.source(page, 'root ::= "a" foo')
        expect(page.locator("#problems")).to_contain_text("foo")
        page.locator("#problems button").first.click()
        self.assertEqual(page.locator("#source").evaluate("it => it.value.slice(it.selectionStart, it.selectionEnd)"), "foo")
        self.source(page, 'root ::= "a" root')
        expect(page.locator("#problems")).to_contain_text("root")
        self.assertNotIn("answer", page.locator("#problems").inner_text())
        page.locator("#source").fill("")
        expect(page.locator("#problems")).to_contain_text("Nothing is written here yet")

    # The answer and its tokens.

    def test_earlier_runs_are_shown_again_as_they_were(self):
        page = self.open()
        self.write(page)
        earlier = page.get_by_label("Runs on this page")
        expect(earlier).to_be_hidden()
        first = self.text(page)
        self.regex(page, "[0-9]{4}")
        self.write(page)
        self.assertNotEqual(self.text(page), first)
        expect(earlier.locator("option")).to_have_count(2)
        asked = len(self.asked)
        earlier.select_option("1")
        self.assertEqual(self.text(page), first)
        self.assertEqual(len(self.asked), asked, "looking back asks for nothing")
        expect(page.locator("#changed")).to_be_visible()
        self.tokens(page).first.click()
        expect(page.locator("#detail-body")).to_contain_text("token 1 of")

    def test_json_has_a_formatted_form_and_bars_say_what_they_show(self):
        page = self.open()
        self.write(page)
        page.get_by_text("Formatted", exact=True).click()
        shown = page.locator(".formatted pre").inner_text()
        self.assertGreater(shown.count("\n"), 2)
        self.assertEqual(json.loads(shown), json.loads(self.text(page)))
        titles = page.locator("#bars title").all_text_contents()
        self.assertEqual(len(titles), self.tokens(page).count())
        self.assertRegex(titles[0], r'^".+": [<>\d]')
        self.regex(page, "[0-9]{4}")
        self.write(page)
        expect(page.locator(".formatted")).to_be_hidden()

    def test_a_token_tells_of_its_own_run_when_the_form_has_changed(self):
        page = self.open()
        self.write(page)
        asked = len(self.asked)
        first = self.tokens(page).first
        first.click()
        detail = page.locator("#detail-body")
        expect(detail).to_contain_text("token 1 of")
        before = detail.inner_text()
        self.assertEqual(len(self.asked), asked, "a click asks for nothing")
        self.regex(page, "[0-9]{4}")
        expect(page.locator("#changed")).to_be_visible()
        self.tokens(page).nth(3).click()
        self.assertNotEqual(detail.inner_text(), before)
        first.click()
        self.assertEqual(detail.inner_text(), before, "what is told is of the run that is shown")
        self.write(page)
        self.assertRegex(self.text(page), r"^[0-9]{4}$")
        expect(page.locator("#changed")).to_be_hidden()
        expect(detail).not_to_contain_text("token 1 of")

    def test_what_the_model_wanted_and_what_was_left_are_told(self):
        page = self.open()
        self.regex(page, "zz[0-9]")
        self.write(page)
        self.tokens(page).first.click()
        rows = page.locator("#detail-body tbody tr")
        told = page.locator("#detail-body").inner_text()
        self.assertRegex(told, r"The constraint removed [\d.> ]+ % of what the model wanted")
        self.assertGreaterEqual(rows.count(), 8)
        self.assertGreaterEqual(page.locator("#detail-body .masked .removed").count(), 7)
        written = page.locator("#detail-body tr.drawn")
        expect(written).to_have_count(1)
        self.assertNotIn("removed", written.inner_text())

    def test_the_place_in_the_schema_is_that_of_the_token(self):
        page = self.open()
        self.write(page)
        texts = self.tokens(page).all_text_contents()
        self.tokens(page).nth(texts.index("34")).click()
        expect(page.locator("#detail-body dl")).to_contain_text("#/properties/age")
        self.example(page, "Contacts")
        self.write(page)
        self.tokens(page).last.click()
        expect(page.locator("#detail-body dl")).to_contain_text("root")
        self.assertNotIn("answer", page.locator("#detail-body dl").inner_text().lower())

    def test_where_the_budget_began_to_steer_is_shown(self):
        page = self.open()
        self.example(page, "Short of tokens")
        self.write(page)
        note = page.locator("#columns .note").inner_text()
        first = int(re.search(r"steered by max tokens from token (\d+) on", note)[1])
        marked = page.locator("#columns [role=option].steered")
        self.assertGreater(marked.count(), 0)
        self.assertEqual(int(marked.first.get_attribute("data-place")) + 1, first)
        marked.first.click()
        expect(page.locator("#detail-body")).to_contain_text("narrowed the choice")

    def test_a_failure_leaves_nothing_of_the_run_before(self):
        page = self.open(asks_wrong=(400,))
        self.write(page)
        self.tokens(page).first.click()
        page.locator("#length").fill("3")
        self.answered(page)
        expect(page.locator("#failure")).to_contain_text("max_tokens")
        expect(self.tokens(page)).to_have_count(0)
        expect(page.locator("#explorer")).to_be_hidden()
        self.assertEqual(page.locator("#detail-body").inner_text(), "")

    def test_constrained_and_free_text_stand_side_by_side(self):
        page = self.open()
        self.example(page, "With and without")
        self.write(page)
        columns = page.locator("#columns .column")
        expect(columns).to_have_count(2)
        left, right = (columns.nth(index).bounding_box() for index in (0, 1))
        self.assertEqual(left["y"], right["y"])
        self.assertLessEqual(left["x"] + left["width"], right["x"])
        expect(columns.nth(1).locator(".verdict")).to_contain_text("does not obey")
        columns.nth(1).locator("[role=option]").first.click()
        expect(page.locator("#detail-body")).to_contain_text("Nothing constrains this text")

    def test_both_texts_of_a_comparison_are_told_of_the_constraint(self):
        page = self.open()
        self.example(page, "With and without")
        self.write(page)
        bound, free = self.asked_for("/v1/chat/completions")
        self.assertEqual(bound["schema_in_prompt"], "always")
        self.assertNotIn("response_format", free)
        self.assertEqual([message["role"] for message in free["messages"]], ["system", "user"])
        schema = bound["response_format"]["json_schema"]["schema"]
        told = free["messages"][0]["content"].partition("JSON Schema:\n")[2]
        self.assertEqual(json.loads(told), schema)

    def test_several_samples_and_tools_and_fields(self):
        page = self.open()
        self.example(page, "Several samples")
        self.write(page)
        expect(page.locator("#columns .card")).to_have_count(3)
        page.locator("#columns .card").nth(2).locator("[role=option]").first.click()
        expect(page.locator("#detail-body")).to_contain_text("sample 3")
        self.example(page, "Tool call")
        self.write(page)
        expect(page.locator("#columns .calls")).to_contain_text("place_order({")
        self.example(page, "Support ticket")
        self.write(page)
        expect(page.locator("#fields-body tbody tr")).to_have_count(5)

    def test_the_global_law_is_a_choice(self):
        page = self.open()
        page.locator("#law").select_option("global")
        page.locator("#temperature").fill("1")
        self.write(page)
        expect(page.locator("#columns .note")).to_contain_text("law global-exact")
        self.assertEqual(self.asked_for("/v1/chat/completions")[0]["law"], "global")

    def test_a_search_is_a_choice_that_has_no_law(self):
        page = self.open()
        page.locator("#search").select_option("k_best")
        expect(page.locator("#law")).to_be_disabled()
        self.write(page)
        expect(page.locator("#columns .note")).to_contain_text("law k-best")
        expect(page.locator("#columns .plain")).to_contain_text("Maria Keller")
        expect(page.locator("#explorer")).to_be_hidden()
        asked = self.asked_for("/v1/chat/completions")[0]
        self.assertEqual((asked["search"], asked["temperature"], "law" in asked), ("k_best", 0, False))

    def test_monitors_stand_beside_the_constraint(self):
        page = self.open()
        self.example(page, "Monitors")
        self.write(page)
        self.assertRegex(self.text(page).replace("\u2423", " "), "^(Maria|Martha) Keller$")
        expect(page.locator("#columns .note")).to_contain_text("law local \u00b7 allowed by all 2 monitors")
        self.tokens(page).first.click()
        expect(page.locator("#detail-body")).to_contain_text("Then the monitors were asked")
        page.locator("#monitors").fill('{"type": "ebnf", "grammar": "root ::= [A-Za-z ]+"}')
        self.write(page)
        expect(page.locator("#columns .note")).to_contain_text("allowed by the monitor")
        asked = self.asked_for("/v1/chat/completions")
        regex = {"type": "regex", "pattern": "[A-Za-z]+ Keller"}
        self.assertEqual(asked[0]["monitors"], [regex, {"type": "regex", "pattern": "(Maria|Martha).*"}])
        self.assertEqual(asked[1]["monitors"], [{"type": "ebnf", "grammar": "root ::= [A-Za-z ]+"}])
        self.assert_accessible(page)
        self.assert_fits(page)

    def test_a_registered_grammar_is_a_monitor_by_its_id(self):
        page = self.open()
        self.example(page, "Monitors")
        made = page.evaluate("""async () => (await (await fetch("/v1/grammars", {method: "POST",
            headers: {"content-type": "application/json"}, body: '{"regex": "Anna .*"}'})).json()).id""")
        page.locator("#monitors").fill(f"\n  {made}\n")
        self.write(page)
        self.assertTrue(self.text(page).startswith("Anna"))
        self.assertEqual(self.asked_for("/v1/chat/completions")[0]["monitors"], [made])

    def test_a_monitor_that_refuses_everything_is_shown(self):
        page = self.open(asks_wrong=(400, 422))
        self.example(page, "Monitors")
        for second, told in (("[0-9]+", REFUSED), ("(", WRONG)):
            page.locator("#monitors").fill(f"[A-Za-z]+ Keller\n\n{second}")
            expect(page.locator("#monitors")).not_to_have_attribute("aria-invalid", "true")
            self.answered(page)
            expect(page.locator("#failure")).to_contain_text(told)
            expect(page.locator("#monitors")).to_have_attribute("aria-invalid", "true")
            chosen = page.locator("#monitors").evaluate("it => it.value.slice(it.selectionStart, it.selectionEnd)")
            self.assertEqual(chosen, second)

    def test_monitors_are_not_sent_where_nothing_could_ask_them(self):
        page = self.open()
        self.example(page, "Monitors")
        monitors = page.locator("#monitors")
        page.locator("#law").select_option("global")
        expect(monitors).to_be_disabled()
        expect(page.locator("#monitors-hint")).to_contain_text("none are sent now")
        self.write(page)
        page.locator("#law").select_option("local")
        expect(monitors).to_be_enabled()
        page.locator("#search").select_option("k_best")
        expect(monitors).to_be_disabled()
        page.locator("#search").select_option("none")
        page.locator("#compare").check()
        self.write(page)
        asked = self.asked_for("/v1/chat/completions")
        self.assertEqual(["monitors" in body for body in asked], [False, True, False], "free text has none")

    # Keyboard.

    def test_tokens_are_one_stop_and_arrows_lead_from_one_to_the_next(self):
        page = self.open()
        self.write(page)
        page.locator("#copy-answer").focus()
        page.keyboard.press("Tab")
        expect(self.tokens(page).first).to_be_focused()
        page.keyboard.press("ArrowRight")
        expect(self.tokens(page).nth(1)).to_be_focused()
        expect(page.locator("#detail-body")).to_contain_text("token 2 of")
        page.keyboard.press("End")
        expect(self.tokens(page).last).to_be_focused()
        page.keyboard.press("Home")
        expect(self.tokens(page).first).to_be_focused()
        self.assertEqual(page.locator("#columns [tabindex='0']").count(), 1)
        page.keyboard.press("Tab")
        self.assertFalse(page.evaluate("document.activeElement.closest('[role=listbox]') !== null"))
        page.keyboard.press("Shift+Tab")
        expect(self.tokens(page).first).to_be_focused()

    def test_control_and_enter_write_and_so_does_enter_in_a_field(self):
        page = self.open()
        self.write(page, lambda page: page.locator("#source").press("Control+Enter"))
        page.locator("#seed").fill("2")
        self.write(page, lambda page: page.locator("#seed").press("Enter"))
        self.assertEqual([body["seed"] for body in self.asked_for("/v1/chat/completions")], [1, 2])

    # Links and code.

    def test_a_link_holds_everything_and_survives_a_reload(self):
        page = self.open()
        self.example(page, "Several samples")
        page.locator("#prompt").fill("Zoë & 山: 100 % “so”")
        page.locator("#seed").fill("77")
        page.locator("#confidence").check()
        page.locator("#monitors").fill("a.*\n(b")
        link = self.copied(page, "Copy link")
        self.assertIn("#1.", link)
        source = page.locator("#source").input_value()
        other = self.open(link.removeprefix(URL))
        for _ in range(2):
            expect(other.locator("#prompt")).to_have_value("Zoë & 山: 100 % “so”")
            expect(other.locator("#source")).to_have_value(source)
            expect(other.locator("#seed")).to_have_value("77")
            expect(other.locator("#samples")).to_have_value("3")
            expect(other.locator("#monitors")).to_have_value("a.*\n(b")
            expect(other.locator("#confidence")).to_be_checked()
            other.reload(wait_until="networkidle")
            self.still(other)
        other.goto(URL + "/#1.broken", wait_until="networkidle")
        expect(other.locator("#seed")).to_have_value("1")
        self.still(other)
        expect(other.locator("#verdict")).to_contain_text("Compiles")

    def test_the_prompt_is_shown_as_the_model_reads_it(self):
        page = self.open()
        page.get_by_text("The prompt as the model reads it").click()
        shown = page.locator("#prompt-text")
        expect(shown).to_contain_text(page.locator("#prompt").input_value())
        expect(page.locator("#prompt-note")).to_contain_text("tokens")
        page.locator("#prompt").fill("Another question")
        expect(shown).to_contain_text("Another question")
        self.assertEqual(self.copied(page, "Copy prompt"), shown.inner_text())

    def test_the_prompt_tells_who_wrote_what(self):
        page = self.open()
        page.locator("#prompt").fill("say <|user|> twice")
        page.get_by_text("The prompt as the model reads it").click()
        shown = page.locator("#prompt-text")
        expect(shown).to_contain_text("say <|user|> twice")
        # What the user writes is no control token, whatever it spells.
        said = shown.locator("[title='request /messages/0/content']")
        expect(said).to_have_text("say <|user|> twice")
        self.assertEqual(shown.locator(".control").all_text_contents().count("<|user|>"), 1)
        control = shown.locator(".control").first
        self.assertEqual(control.evaluate("it => getComputedStyle(it).backgroundColor"), "rgba(0, 0, 0, 0)")
        self.assertNotEqual(said.evaluate("it => getComputedStyle(it).backgroundColor"), "rgba(0, 0, 0, 0)")
        expect(page.locator("#writers")).to_contain_text("the template")

    # What the source becomes for providers.

    def project(self, page):
        page.get_by_role("tab", name="Project").click()
        self.still(page)

    def test_the_source_is_shown_as_each_provider_takes_it(self):
        page = self.open()
        self.source(page, LOSSY)
        self.project(page)
        cards = page.locator(".target")
        expect(cards).to_have_count(6)
        openai = page.get_by_role("region", name="openai-strict")
        expect(openai.locator(".relation")).to_have_text("wider: answers have to be validated (proven)")
        loss = openai.locator(".places .warn").first
        expect(loss).to_contain_text("uniqueItems")
        loss.click()
        chosen = page.locator("#source").evaluate("it => it.value.slice(it.selectionStart, it.selectionEnd)")
        self.assertEqual(chosen, '"uniqueItems": true')
        expect(page.locator(".marks mark.note").first).to_contain_text("uniqueItems")
        copied = json.loads(self.copied(page, "Copy for openai-strict"))
        # Keys and numbers as they are, which JavaScript's objects would sort and round.
        self.assertEqual(list(copied["properties"]), ["tags", "10"])
        self.assertIn("12345678901234567890", openai.locator("pre").inner_text())
        page.locator("#toward").select_option("narrower")
        self.still(page)
        expect(openai.locator(".relation")).to_contain_text("narrower")
        page.locator("#targets").get_by_text("gemini", exact=True).click()
        expect(cards).to_have_count(5)

    def test_projections_follow_the_source_and_tell_of_problems_at_their_place(self):
        page = self.open(asks_wrong=(400,))
        self.project(page)
        expect(page.locator(".target")).to_have_count(6)
        self.source(page, SUPPORT)
        expect(page.locator(".target")).to_have_count(0)
        problem = page.locator("#projections .places button").first
        expect(problem).to_contain_text("line 2")
        problem.click()
        chosen = page.locator("#source").evaluate("it => it.value.slice(it.selectionStart, it.selectionEnd)")
        self.assertEqual(chosen, '"type": "strin"')
        page.get_by_text("Regex", exact=True).click()
        self.still(page)
        expect(page.locator("#projections-note")).to_contain_text("Schemas and the parameters of tools")
        page.get_by_text("Tools", exact=True).click()
        self.still(page)
        expect(page.locator(".target")).to_have_count(6)
        self.write(page)
        expect(page.locator("#answer")).to_be_visible()
        expect(page.locator("#projections")).to_be_hidden()

    def test_tabs_are_one_stop_and_arrows_lead_from_one_to_the_next(self):
        page = self.open()
        first, second = page.get_by_role("tab", name="Answer"), page.get_by_role("tab", name="Project")
        first.focus()
        page.keyboard.press("ArrowRight")
        expect(second).to_be_focused()
        expect(second).to_have_attribute("aria-selected", "true")
        expect(page.locator("#projections")).to_be_visible()
        self.still(page)
        page.keyboard.press("Home")
        expect(first).to_be_focused()
        expect(page.locator("#answer")).to_be_visible()

    def test_projections_are_easy_to_read_and_within_reach(self):
        for scheme in ("light", "dark"):
            for size in (DESK, PHONE):
                with self.subTest(scheme=scheme, width=size["width"]):
                    page = self.open(size=size, color_scheme=scheme)
                    self.source(page, LOSSY)
                    self.project(page)
                    expect(page.locator(".target")).to_have_count(6)
                    page.get_by_text("The prompt as the model reads it").click()
                    expect(page.locator("#prompt-text .control").first).to_be_visible()
                    self.assert_accessible(page)
                    self.assert_fits(page)

    def test_the_request_is_shown_as_code_and_can_be_copied(self):
        page = self.open()
        page.get_by_text("This request as code").click()
        snippet = page.locator("#snippet")
        expect(snippet).to_contain_text(f"curl -s {URL}/v1/chat/completions")
        body = json.loads(re.search(r"-d '(.*)'$", snippet.inner_text(), re.S)[1])
        self.assertEqual(body["response_format"]["json_schema"]["schema"]["required"], ["name", "age", "city"])
        page.get_by_text("Python", exact=True).click()
        compile(snippet.inner_text(), "snippet", "exec")
        page.get_by_text("Regex", exact=True).click()
        self.still(page)
        expect(snippet).to_contain_text("extra_body={")
        compile(snippet.inner_text(), "snippet", "exec")
        page.get_by_text("JavaScript", exact=True).click()
        expect(snippet).to_contain_text("structured_outputs")
        self.assertEqual(self.copied(page, "Copy code"), snippet.inner_text())

    def test_a_server_with_keys_is_asked_with_the_key_of_this_tab(self):
        page = self.open(asks_wrong=(401,))
        self.guard(page, "s3cret")
        page.reload()
        for text in ("wrong", "s3cret"):
            page.get_by_label("API key", exact=True).fill(text)
            page.get_by_role("button", name="Use this key").click()
            if text == "wrong":
                expect(page.get_by_role("dialog")).to_contain_text("was refused")
        expect(page.get_by_role("dialog")).to_be_hidden()
        self.still(page)
        expect(page.locator("#verdict")).to_contain_text("Compiles")
        self.write(page)
        self.assertEqual(page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]"), [0, 1, ""])
        page.get_by_text("This request as code").click()
        expect(page.locator("#snippet")).to_contain_text("curl -s")
        self.assertNotIn("s3cret", page.content() + page.url)
        page.get_by_role("button", name="Forget the API key").click()
        page.get_by_role("button", name="Write", exact=True).click()
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#failure")).to_contain_text("no key")
        expect(self.tokens(page)).to_have_count(0)

    # How it looks, and to whom.

    def test_nothing_is_hard_to_read_or_out_of_reach(self):
        for scheme in ("light", "dark"):
            for size in (DESK, PHONE):
                with self.subTest(scheme=scheme, width=size["width"]):
                    page = self.open(size=size, color_scheme=scheme)
                    self.assert_accessible(page)
                    self.assert_fits(page)
                    self.example(page, "With and without")
                    page.locator("#confidence").check()
                    self.write(page)
                    self.tokens(page).nth(2).click()
                    self.assert_accessible(page)
                    self.assert_fits(page)
                    self.source(page, SUPPORT)
                    expect(page.locator("#problems button")).to_have_count(3)
                    page.get_by_text("This request as code").click()
                    expect(page.locator("#snippet")).to_contain_text("curl -s")
                    self.assert_accessible(page)
                    self.assert_fits(page)

    def test_branches_are_shown_where_somebody_tells_of_them(self):
        page = self.open()
        expect(page.locator("#branches")).to_be_hidden()
        nodes = [{"id": 1, "parent": None, "text": "Vi", "outcome": "kept", "probability": 0.8},
                 {"id": 2, "parent": 1, "text": "enna", "outcome": "kept", "probability": 0.9},
                 {"id": 3, "parent": 1, "text": "lla", "outcome": "rejected", "probability": None, "note": "drawn otherwise"}]
        page.evaluate("detail => document.dispatchEvent(new CustomEvent('lexiform:branches', {detail}))",
                      {"kind": "drafts", "nodes": nodes})
        expect(page.locator("#branches-title")).to_have_text("Drafts")
        expect(page.locator("#branches-body li li")).to_have_count(2)
        expect(page.locator("#branches-body")).to_contain_text("rejected: drawn otherwise")
        self.write(page)
        expect(page.locator("#branches")).to_be_hidden()

    def test_a_token_leads_to_the_drafts_of_its_pass(self):
        page = self.open()
        # Which drafts are fed depends on what passes cost on this machine just now, so it is written until some were. Keys that
        # this client has had before are drafted from its earlier answers, so that each attempt has keys of its own.
        forced, ends = page.locator("#columns [role=option].forced"), time.monotonic() + PATIENCE / 1000
        for attempt in itertools.count():
            keys = [f"{side}_of_parcel_{attempt}" for side in ("length", "width")]
            properties = {key: {"type": "integer", "minimum": 1, "maximum": 9} for key in keys}
            self.source(page, json.dumps({"type": "object", "properties": properties, "required": keys, "additionalProperties": False}))
            self.write(page)
            if forced.count() or time.monotonic() > ends:
                break
        shown = [text.replace("⏎\n", "⏎").replace(" ", "␣") for text in self.tokens(page).all_text_contents()]
        forced.first.click()
        expect(page.locator("#branches")).to_be_visible()
        title = page.locator("#branches-title").inner_text()
        first, last = map(int, re.fullmatch(r"Drafts of the pass that wrote tokens (\d+) to (\d+)", title).groups())
        kept = page.locator("#branches-body li.kept > code").all_text_contents()
        self.assertEqual(len(kept), last - first)
        for text, token in zip(kept, shown[first - 1:]):
            self.assertIn(text, (token, f"⟨{text[1:-1]}⟩"))
        expect(page.locator("#branches-body")).to_contain_text("kept: the constraint")
        self.assert_accessible(page)
        self.assert_fits(page)

    def test_refused_drafts_are_told_from_those_that_nobody_judged(self):
        page = self.open()

        def token(text, drafts=None):
            told = {"id": 1, "text": text, "origin": "sampled", "allowed": 9, "steered": False, "probability": 0.5, "mass": 0.9, "micros": 7}
            return {**told, **({"drafts": drafts} if drafts else {})}

        def draft(text, parent, fate, drafter="suffix"):
            return {"id": 1, "text": text, "parent": parent, "drafter": drafter, "fate": fate}

        tree = [draft("a", None, "kept"), draft("b", 0, "kept"), draft("c", 1, "refused"), draft("d", 2, "unjudged"),
                draft("e", 0, "refused", "copied")]
        tokens = [token("x"), token("a", tree), token("b"), token("z"), token("y")]
        choice = {"index": 0, "delta": {"content": "xabzy"}, "finish_reason": "stop", "lexiform_tokens": tokens}
        body = f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n"
        page.route("**/v1/chat/completions", lambda route: route.fulfill(status=200, content_type="text/event-stream", body=body))
        self.write(page)
        for place in (1, 2, 3):
            self.tokens(page).nth(place).click()
            expect(page.locator("#branches-title")).to_have_text("Drafts of the pass that wrote tokens 2 to 4")
            expect(page.locator("#branches-body li.kept > code")).to_have_text(["a", "b"])
            expect(page.locator("#branches-body li.rejected > code")).to_have_text(["c", "e"])
            expect(page.locator("#branches-body li.open > code")).to_have_text(["d"])
        expect(page.locator("#branches-body")).to_contain_text("rejected: copied from the text")
        for place in (0, 4):
            self.tokens(page).nth(place).click()
            expect(page.locator("#branches")).to_be_hidden()


if __name__ == "__main__":
    unittest.main()
