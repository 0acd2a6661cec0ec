"""The official `openai` client, unchanged, against a served model.

LEXIFORM_URL says where the service listens. Which text the model writes is not judged here, except where the demo
model is served: these tests are about what the client can read.
"""

import json
import re
import os
import threading
import unittest
from enum import Enum
from typing import Annotated

import openai
from pydantic import BaseModel, Field

URL = os.environ.get("LEXIFORM_URL", "http://127.0.0.1:8000")


class Level(Enum):
    low = "low"
    high = "high"


# Bounded, so that every answer is whole within the length that the test asks for, whatever the model writes.
Text = Annotated[str, Field(max_length=24)]


class Address(BaseModel):
    street: Text
    city: Text


class Person(BaseModel):
    name: str
    age: int
    city: str


class Ticket(BaseModel):
    title: Text
    level: Level
    tags: Annotated[list[Text], Field(max_length=3)]
    contact: Address | None


class Client(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(base_url=f"{URL}/v1", api_key="none", max_retries=0)
        self.model = self.client.models.list().data[0].id
        self.messages = [{"role": "user", "content": "Maria Keller is 34 years old and lives in Vienna."}]

    def tearDown(self):
        self.client.close()


class Answers(Client):
    def test_a_pydantic_model_is_parsed(self):
        completion = self.client.chat.completions.parse(
            model=self.model, messages=self.messages, response_format=Person, temperature=0
        )
        person = completion.choices[0].message.parsed
        self.assertIsInstance(person, Person)
        self.assertEqual(completion.choices[0].finish_reason, "stop")
        self.assertEqual(completion.usage.total_tokens, completion.usage.prompt_tokens + completion.usage.completion_tokens)
        if self.model == "demo":
            self.assertEqual(person, Person(name="Maria Keller", age=34, city="Vienna"))

    def test_a_model_with_choices_lists_and_references_is_parsed(self):
        completion = self.client.chat.completions.parse(
            model=self.model,
            messages=[{"role": "user", "content": "Ticket: printer broken. Level high. Tags: office, paper."}],
            response_format=Ticket,
            temperature=0,
            max_tokens=400,
        )
        self.assertIsInstance(completion.choices[0].message.parsed, Ticket)

    def test_several_samples(self):
        completion = self.client.chat.completions.create(
            model=self.model, messages=self.messages, response_format={"type": "json_object"}, n=3, max_tokens=200
        )
        self.assertEqual([choice.index for choice in completion.choices], [0, 1, 2])

    def test_extension_fields_travel_both_ways(self):
        completion = self.client.chat.completions.create(
            model=self.model,
            messages=self.messages,
            seed=3,
            temperature=1,
            extra_body={"structured_outputs": {"choice": ["yes", "no"]}, "law": "global"},
        )
        self.assertIn(completion.choices[0].message.content, ["yes", "no"])
        self.assertEqual(completion.choices[0].lexiform["law"], "global-exact")

    def test_logprobs(self):
        completion = self.client.chat.completions.create(
            model=self.model, messages=self.messages, max_tokens=3, logprobs=True, top_logprobs=2
        )
        for entry in completion.choices[0].logprobs.content:
            self.assertLessEqual(entry.logprob, 0.0)
            self.assertEqual(len(entry.top_logprobs), 2)

    def test_a_forced_tool(self):
        tool = openai.pydantic_function_tool(Person, name="save_person")
        completion = self.client.chat.completions.create(
            model=self.model,
            messages=self.messages,
            tools=[tool],
            tool_choice={"type": "function", "function": {"name": "save_person"}},
        )
        call = completion.choices[0].message.tool_calls[0]
        self.assertEqual(call.function.name, "save_person")
        Person.model_validate_json(call.function.arguments)

    def test_a_tool_is_called_if_it_fits(self):
        if self.model != "demo":
            self.skipTest("only the demo model is known to choose")
        parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        function = {"name": "get_weather", "description": "Get the current weather in a city.", "parameters": parameters}
        ask = dict(model=self.model, temperature=0, tools=[{"type": "function", "function": function}])
        question = {"role": "user", "content": "What is the weather in Paris?"}
        called = self.client.chat.completions.create(messages=[question], **ask).choices[0]
        self.assertEqual(called.finish_reason, "tool_calls")
        call = called.message.tool_calls[0]
        self.assertEqual((call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Paris"}))
        result = {"role": "tool", "tool_call_id": call.id, "content": '{"temperature": 21}'}
        told = self.client.chat.completions.create(messages=[question, called.message, result], **ask).choices[0]
        self.assertIn("21", told.message.content)
        for words in ["Hello!", "Thank you."]:
            said = self.client.chat.completions.create(messages=[{"role": "user", "content": words}], **ask).choices[0]
            self.assertEqual((said.finish_reason, said.message.tool_calls), ("stop", None))
            self.assertTrue(said.message.content)

    def test_completions(self):
        completion = self.client.completions.create(model=self.model, prompt="Hello", max_tokens=4)
        self.assertIn(completion.choices[0].finish_reason, ["stop", "length"])

    def test_models(self):
        self.assertEqual(self.client.models.retrieve(self.model).id, self.model)


class Streams(Client):
    def test_chunks_add_up_to_the_answer(self):
        format = {"type": "json_schema", "json_schema": {"name": "P", "schema": Person.model_json_schema()}}
        arguments = dict(model=self.model, messages=self.messages, response_format=format, temperature=0)
        whole = self.client.chat.completions.create(**arguments).choices[0].message.content
        chunks = list(
            self.client.chat.completions.create(**arguments, stream=True, stream_options={"include_usage": True})
        )
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        self.assertEqual(text, whole)
        self.assertEqual(chunks[-1].choices, [])
        self.assertGreater(chunks[-1].usage.completion_tokens, 0)

    def test_the_client_parses_a_stream(self):
        with self.client.chat.completions.stream(
            model=self.model, messages=self.messages, response_format=Person, temperature=0
        ) as stream:
            for _ in stream:
                pass
            self.assertIsInstance(stream.get_final_completion().choices[0].message.parsed, Person)

    def test_a_stream_that_is_closed_early_leaves_the_server_well(self):
        stream = self.client.chat.completions.create(model=self.model, messages=self.messages, stream=True)
        next(iter(stream))
        stream.close()
        self.test_the_client_parses_a_stream()


class Errors(Client):
    def test_each_error_has_its_class(self):
        with self.assertRaises(openai.NotFoundError) as raised:
            self.client.chat.completions.create(model="other", messages=self.messages)
        self.assertEqual(raised.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError) as raised:
            self.client.chat.completions.create(model=self.model, messages=self.messages, temperature=9)
        self.assertEqual(raised.exception.param, "temperature")
        self.assertTrue(raised.exception.request_id)

    def test_a_schema_that_cannot_be_enforced_is_refused(self):
        format = {"type": "json_schema", "json_schema": {"name": "P", "schema": {"type": "text"}}}
        with self.assertRaises(openai.BadRequestError) as raised:
            self.client.chat.completions.create(model=self.model, messages=self.messages, response_format=format)
        self.assertIn("Invalid schema for response_format 'P'", str(raised.exception))

    def test_an_old_field_for_a_constraint_is_honoured_and_an_unknown_one_refused(self):
        body = {"guided_regex": "[a-c]{4}"}
        completion = self.client.chat.completions.create(model=self.model, messages=self.messages, extra_body=body)
        self.assertRegex(completion.choices[0].message.content, "^[a-c]{4}$")
        with self.assertRaises(openai.BadRequestError):
            self.client.chat.completions.create(
                model=self.model, messages=self.messages, extra_body={"guided_telepathy": "x"}
            )

    def test_a_text_that_would_be_cut_is_refused_with_the_least_that_it_takes(self):
        ask = dict(model=self.model, messages=self.messages, response_format=Person)
        with self.assertRaises(openai.BadRequestError) as refused:
            self.client.chat.completions.parse(max_tokens=2, **ask)
        least = int(re.search(r"takes (\d+)", str(refused.exception)).group(1))
        answer = self.client.chat.completions.parse(max_tokens=least, **ask)
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertIsNotNone(answer.choices[0].message.parsed)


class Crowds(Client):
    def test_many_clients_at_once(self):
        answers = []

        def ask(number):
            completion = self.client.chat.completions.parse(
                model=self.model, messages=self.messages, response_format=Person, seed=number, temperature=0
            )
            answers.append(json.loads(completion.choices[0].message.content))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), 8)
        for answer in answers:
            self.assertEqual(list(answer), ["name", "age", "city"])


if __name__ == "__main__":
    unittest.main()
