"""The manifests for `loadwise steer`: the command takes their arguments, and brokers load the class of the jar."""

from pathlib import Path

import yaml
from broker_assignor import NAME

from loadwise.cli.parser import Parser
from loadwise.cli.steer import DESCRIPTION, EPILOG, add_options
from loadwise.running_group.command_config import client_settings

MANIFESTS = Path(__file__).resolve().parents[2] / "examples/kubernetes"


def test_the_deployment_runs_two_processes_with_valid_arguments():
    secret, deployment = yaml.safe_load_all((MANIFESTS / "steer.yaml").read_text())
    assert deployment["spec"]["replicas"] == 2
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    parser = Parser("loadwise steer", DESCRIPTION, EPILOG)
    add_options(parser)
    options = parser.parse(container["args"])
    settings = client_settings(secret["stringData"][options.command_config.name], "client.properties")
    assert settings["sasl_plain_username"] == "steer"
    assert container["command"] == ["loadwise", "steer"]
    assert options.metrics_port == container["ports"][0]["containerPort"]
    (mount,) = container["volumeMounts"]
    assert str(options.command_config).startswith(mount["mountPath"])
    assert pod["volumes"][0]["secret"]["secretName"] == secret["metadata"]["name"]


def test_strimzis_brokers_get_the_class_of_the_jar():
    kafka = yaml.safe_load((MANIFESTS / "strimzi.yaml").read_text())["spec"]["kafka"]
    assert kafka["config"]["group.consumer.assignors"].split(",")[-1] == NAME
