"""The manifests of docs/autoscaling.md beside the schema that KEDA's own module has."""

import json
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml
from missing import unavailable

KEDA = "github.com/kedacore/keda/v2@v2.21.0"
MANIFESTS = Path(__file__).resolve().parents[2] / "examples/kubernetes"

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def scaled_object_schema(tmp_path_factory):
    go = shutil.which("go")
    if go is None:
        unavailable("the schema of KEDA needs Go, which fetches KEDA's module")
    fetched = subprocess.run(
        [go, "mod", "download", "-json", KEDA],
        cwd=tmp_path_factory.mktemp("keda"),
        capture_output=True,
        text=True,
        check=True,
    )
    crd = Path(json.loads(fetched.stdout)["Dir"]) / "config/crd/bases/keda.sh_scaledobjects.yaml"
    [version] = [each for each in yaml.safe_load(crd.read_text())["spec"]["versions"] if each["name"] == "v1alpha1"]
    return version["schema"]["openAPIV3Schema"]


def closed(schema):
    """The schema without the fields that Kubernetes would drop in silence: an unknown one is a mistake."""
    if isinstance(schema, dict):
        schema = {key: closed(each) for key, each in schema.items()}
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    elif isinstance(schema, list):
        schema = [closed(each) for each in schema]
    return schema


def test_the_scaled_object_is_one_by_kedas_schema(scaled_object_schema):
    schema = closed(scaled_object_schema)
    schema["properties"]["metadata"] = {"type": "object"}  # Kubernetes' own, which the schema leaves open
    scaled = yaml.safe_load((MANIFESTS / "scaledobject.yaml").read_text())
    jsonschema.validate(scaled, schema)
    scaled["spec"]["maxReplicas"] = scaled["spec"].pop("maxReplicaCount")
    with pytest.raises(jsonschema.ValidationError, match="maxReplicas"):
        jsonschema.validate(scaled, schema)


def test_it_scales_the_deployment_by_the_metric_of_one_member_each():
    scaled = yaml.safe_load((MANIFESTS / "scaledobject.yaml").read_text())["spec"]
    deployment = yaml.safe_load((MANIFESTS / "consumer.yaml").read_text())
    assert scaled["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert "replicas" not in deployment["spec"]
    [trigger] = scaled["triggers"]
    assert trigger["metadata"]["query"].startswith("max(loadwise_members_wanted{")
    assert (trigger["metadata"]["threshold"], trigger["metadata"]["ignoreNullValues"]) == ("1", "false")
