"""Instructor, unchanged, in each of its modes. It wants an older `openai` than the others, so it has its own place."""

import os
import unittest

import instructor
import openai
from pydantic import BaseModel

URL = os.environ.get("LEXIFORM_URL", "http://127.0.0.1:8000")


class Person(BaseModel):
    name: str
    age: int
    city: str


class Modes(unittest.TestCase):
    def ask(self, mode):
        plain = openai.OpenAI(base_url=f"{URL}/v1", api_key="none", max_retries=0)
        with plain:
            model = plain.models.list().data[0].id
            client = instructor.from_openai(plain, mode=mode)
            person = client.create(
                model=model,
                response_model=Person,
                max_retries=0,
                messages=[{"role": "user", "content": "Maria Keller is 34 years old and lives in Vienna."}],
            )
        self.assertIsInstance(person, Person)

    def test_tools(self):
        self.ask(instructor.Mode.TOOLS)

    def test_json_schema(self):
        self.ask(instructor.Mode.JSON_SCHEMA)

    def test_responses_tools(self):
        self.ask(instructor.Mode.RESPONSES_TOOLS)


if __name__ == "__main__":
    unittest.main()
