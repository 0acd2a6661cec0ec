"""schemathesis against the OpenAPI document that the service serves: thousands of requests made from it, good and bad.

No answer may be a 5xx or fail to come, every answer must have the shape that the document gives it, and what the
document forbids must be refused. That all it allows is accepted is not asked: whether a schema can be satisfied, or a
name is a tool's, no document can say.

More examples: LEXIFORM_EXAMPLES=400 LEXIFORM_SEED=7 python -m unittest discover -s server/tests/clients/document
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

URL = os.environ.get("LEXIFORM_URL", "http://127.0.0.1:8000")
EXAMPLES = os.environ.get("LEXIFORM_EXAMPLES", "8")
SEED = os.environ.get("LEXIFORM_SEED", "1")
# No request may take longer. Those of a few tokens take milliseconds, but a prompt that is no conversation may lead the demo
# model on to the end of its 4,096 tokens, which takes a program without optimisation minutes on a machine that does much else.
SECONDS = "1800"


def counted(name):
    """A counter of the service, summed over its labels."""
    with urllib.request.urlopen(f"{URL}/metrics", timeout=300) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(re.escape(name) + r"[ {]", line))


class Document(unittest.TestCase):
    def test_requests_made_from_the_document_are_answered_as_it_says(self):
        program = pathlib.Path(sys.executable).with_name("schemathesis")
        command = [program, "run", f"{URL}/openapi.json", "--max-examples", EXAMPLES, "--seed", SEED, "--workers", "2",
                   "--request-timeout", SECONDS, "--continue-on-failure", "--no-color",
                   "--exclude-checks", "positive_data_acceptance"]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        print(done.stdout[-1500:])
        self.assertEqual(done.returncode, 0, done.stdout[-20_000:] + done.stderr[-2_000:])
        made = re.search(r"(\d+) generated", done.stdout)
        self.assertIsNotNone(made, done.stdout)
        self.assertGreater(int(made[1]), 500)
        # The model may have been unloaded; what is tested next finds it as it was.
        with urllib.request.urlopen(urllib.request.Request(f"{URL}/v1/models/demo/load", method="POST"), timeout=300) as answer:
            self.assertEqual(answer.status, 200)
        self.assertEqual(counted("lexiform_panics_total"), 0)
        self.assertEqual(counted("lexiform_invalid_output_total"), 0)


if __name__ == "__main__":
    unittest.main()
