"""The manifests in deploy/ against the schemas of Kubernetes, against each other, and against the service that runs.

`kubernetes-validate` brings the schemas of the kinds that Kubernetes itself has. InferencePool is not one of them: what
version 1 of the Gateway API inference extension says of its fields is written down here.
"""

import os
import pathlib
import unittest
import urllib.request

import jsonschema
import kubernetes_validate
import yaml

DEPLOY = pathlib.Path(__file__).resolve().parents[4] / "deploy"
KUBERNETES = "1.37"
SERVICE = os.environ["LEXIFORM_URL"]

PORT = {
    "type": "object",
    "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 65535}},
    "required": ["number"],
    "additionalProperties": False,
}
POOL = {
    "type": "object",
    "properties": {
        "selector": {
            "type": "object",
            "properties": {"matchLabels": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}},
            "required": ["matchLabels"],
            "additionalProperties": False,
        },
        "targetPorts": {"type": "array", "items": PORT, "minItems": 1, "maxItems": 8, "uniqueItems": True},
        "appProtocol": {"enum": ["http", "kubernetes.io/h2c"]},
        "endpointPickerRef": {
            "type": "object",
            "properties": {
                "group": {"type": "string"},
                "kind": {"type": "string"},
                "name": {"type": "string", "minLength": 1},
                "port": PORT,
                "failureMode": {"enum": ["FailOpen", "FailClose"]},
            },
            # The port may be left out only where the kind is not Service, which is what it is by default.
            "required": ["name", "port"],
            "additionalProperties": False,
        },
    },
    "required": ["selector", "targetPorts", "endpointPickerRef"],
    "additionalProperties": False,
}


def documents():
    found = {}
    for document in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()):
        assert document["kind"] not in found, "one of each kind"
        found[document["kind"]] = document
    return found


class Manifests(unittest.TestCase):
    def setUp(self):
        self.documents = documents()
        self.deployment = self.documents["Deployment"]
        self.pod = self.deployment["spec"]["template"]
        [self.container] = self.pod["spec"]["containers"]
        self.variables = {entry["name"]: entry["value"] for entry in self.container["env"]}

    def test_kinds_of_kubernetes_fit_their_schemas(self):
        checked = []
        for kind, document in self.documents.items():
            if kind != "InferencePool":
                kubernetes_validate.validate(document, KUBERNETES, strict=True)
                checked.append(kind)
        self.assertEqual(sorted(checked), [
            "Deployment", "HorizontalPodAutoscaler", "PersistentVolumeClaim", "PodDisruptionBudget", "Secret", "Service",
        ])

    def test_a_wrong_field_would_be_noticed(self):
        self.container["livenesProbe"] = self.container.pop("livenessProbe")
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(self.deployment, KUBERNETES, strict=True)

    def test_the_pool_fits_what_its_documentation_says(self):
        pool = self.documents["InferencePool"]
        self.assertEqual(pool["apiVersion"], "inference.networking.k8s.io/v1")
        jsonschema.validate(pool["spec"], POOL)

    def test_the_pool_and_the_autoscaler_mean_the_deployment(self):
        labels = self.pod["metadata"]["labels"]
        selectors = [self.deployment["spec"]["selector"], self.documents["InferencePool"]["spec"]["selector"]]
        for selector in selectors:
            self.assertLessEqual(selector["matchLabels"].items(), labels.items())
        target = self.documents["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
        self.assertEqual(
            (target["apiVersion"], target["kind"], target["name"]),
            (self.deployment["apiVersion"], "Deployment", self.deployment["metadata"]["name"]),
        )

    def test_all_ports_are_the_one_that_is_served(self):
        port, metrics = self.container["ports"]
        self.assertEqual(str(port["containerPort"]), self.variables["LEXIFORM_PORT"])
        self.assertEqual(self.variables["LEXIFORM_HOST"], "0.0.0.0")
        self.assertEqual(f"0.0.0.0:{metrics['containerPort']}", self.variables["LEXIFORM_METRICS_ADDRESS"])
        [served] = self.documents["Service"]["spec"]["ports"]
        self.assertEqual(served["targetPort"], port["name"])
        [target] = self.documents["InferencePool"]["spec"]["targetPorts"]
        self.assertEqual(target["number"], port["containerPort"])
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"]:
            self.assertEqual(self.container[probe]["httpGet"]["port"], port["name"], probe)

    def test_there_is_time_to_drain(self):
        [_, pause] = self.container["lifecycle"]["preStop"]["exec"]["command"]
        needed = int(pause) + int(self.variables["LEXIFORM_DRAIN_SECONDS"])
        self.assertGreater(self.pod["spec"]["terminationGracePeriodSeconds"], needed)

    def test_the_service_has_the_probes_and_the_metrics(self):
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"]:
            path = self.container[probe]["httpGet"]["path"]
            with urllib.request.urlopen(SERVICE + path) as answer:
                self.assertEqual(answer.status, 200, probe)
        with urllib.request.urlopen(SERVICE + "/metrics") as answer:
            metrics = answer.read().decode()
        for metric in self.documents["HorizontalPodAutoscaler"]["spec"]["metrics"]:
            name = metric["pods"]["metric"]["name"]
            self.assertIn("\n" + name + "{", metrics)


if __name__ == "__main__":
    unittest.main()
