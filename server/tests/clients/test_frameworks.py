"""PydanticAI and LangChain, unchanged, against a served model: each asks in its own way, over both APIs."""

import os
import unittest

from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

import openai

URL = os.environ.get("LEXIFORM_URL", "http://127.0.0.1:8000")
TEXT = "Maria Keller is 34 years old and lives in Vienna."


class Person(BaseModel):
    name: str
    age: int
    city: str


MARIA = Person(name="Maria Keller", age=34, city="Vienna")


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with openai.OpenAI(base_url=f"{URL}/v1", api_key="none") as client:
            cls.model = client.models.list().data[0].id

    def check(self, person):
        self.assertIsInstance(person, Person)
        if self.model == "demo":
            self.assertEqual(person, MARIA)


class PydanticAI(Served):
    def models(self):
        provider = OpenAIProvider(base_url=f"{URL}/v1", api_key="none")
        return [OpenAIChatModel(self.model, provider=provider), OpenAIResponsesModel(self.model, provider=provider)]

    def test_an_output_tool_is_called(self):
        for model in self.models():
            agent = Agent(model, output_type=ToolOutput(Person), model_settings=ModelSettings(temperature=0))
            self.check(agent.run_sync(TEXT).output)

    def test_a_native_output_is_parsed(self):
        for model in self.models():
            agent = Agent(model, output_type=NativeOutput(Person), model_settings=ModelSettings(temperature=0))
            self.check(agent.run_sync(TEXT).output)


    def test_a_schema_in_the_prompt_is_followed(self):
        for model in self.models():
            agent = Agent(model, output_type=PromptedOutput(Person), model_settings=ModelSettings(temperature=0))
            self.check(agent.run_sync(TEXT).output)

    def test_a_tool_is_called_before_the_answer(self):
        if self.model != "demo":
            self.skipTest("only the demo model is known to call it")
        for model in self.models():
            agent = Agent(model, model_settings=ModelSettings(temperature=0))
            cities = []

            @agent.tool_plain
            def get_weather(city: str) -> str:
                """Get the current weather in a city."""
                cities.append(city)
                return "Sunny, 21 degrees."

            self.assertIn("21", agent.run_sync("What is the weather in Vienna?").output)
            self.assertEqual(cities, ["Vienna"])


class LangChain(Served):
    def test_each_method_of_structured_output(self):
        for responses in [False, True]:
            model = ChatOpenAI(
                model=self.model, base_url=f"{URL}/v1", api_key="none", temperature=0, use_responses_api=responses
            )
            for method in ["json_schema", "function_calling"]:
                self.check(model.with_structured_output(Person, method=method).invoke(TEXT))

    def test_keys_that_the_prompt_names_are_the_keys_of_the_answer(self):
        model = ChatOpenAI(model=self.model, base_url=f"{URL}/v1", api_key="none", temperature=0)
        structured = model.with_structured_output(Person, method="json_mode")
        if self.model == "demo":
            self.check(structured.invoke(f"{TEXT} Return JSON with the keys name, age and city."))

    def test_a_stream_adds_up(self):
        model = ChatOpenAI(model=self.model, base_url=f"{URL}/v1", api_key="none", temperature=0, max_tokens=8)
        text = "".join(chunk.content for chunk in model.stream(TEXT))
        self.assertEqual(text, model.invoke(TEXT).content)


if __name__ == "__main__":
    unittest.main()
