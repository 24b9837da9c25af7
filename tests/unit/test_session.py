"""Spark's configuration for the lakehouse's store: where it is and how to commit to it, and never a key."""

import shlex
from pathlib import Path

from gamelake.objects.store import Location
from gamelake.session import class_archive, jvm_options, quoted_option, store_options

QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
KEYS = {"AWS_ACCESS_KEY_ID": "hidden", "AWS_SECRET_ACCESS_KEY": "hidden too", "AWS_SESSION_TOKEN": "hidden as well"}


def test_spark_commits_to_an_object_store_by_conditional_puts() -> None:
    configuration = store_options(Location(uri="s3://lake"))

    log_store = "dev.gamelake.storage.ConditionalPutLogStore"
    assert configuration["spark.delta.logStore.s3.impl"] == log_store
    assert configuration["spark.delta.logStore.s3a.impl"] == log_store


def test_a_streams_checkpoint_on_an_object_store_is_put_and_not_renamed() -> None:
    configuration = store_options(Location(uri="s3://lake"))

    manager = "dev.gamelake.storage.ConditionalPutCheckpointFileManager"
    assert configuration["spark.sql.streaming.checkpointFileManagerClass"] == manager


def test_a_store_other_than_aws_is_reached_at_its_endpoint() -> None:
    options = {"AWS_ENDPOINT_URL": "http://store:9000", "AWS_REGION": "us-east-1"}

    configuration = store_options(Location(uri="s3://lake", options=options))

    assert configuration["spark.hadoop.fs.s3a.endpoint"] == "http://store:9000"
    assert configuration["spark.hadoop.fs.s3a.endpoint.region"] == "us-east-1"
    assert configuration["spark.hadoop.fs.s3a.path.style.access"] == "true"


def test_sparks_configuration_has_no_key() -> None:
    assert "hidden" not in repr(store_options(Location(uri="s3://lake", options=KEYS)))


def test_spark_commits_to_a_local_lakehouse_by_links() -> None:
    configuration = store_options(Location(uri="file:///srv/lakehouse"))

    assert configuration == {
        "spark.delta.logStore.file.impl": "dev.gamelake.storage.HardLinkLogStore",
        "spark.sql.streaming.checkpointFileManagerClass": "dev.gamelake.storage.SyncedCheckpointFileManager",
    }


def test_a_jvm_that_only_plans_compiles_quickly() -> None:
    assert QUICK_COMPILER in jvm_options(None, only_plans=True)
    assert QUICK_COMPILER not in jvm_options(None, only_plans=False)


def test_a_local_session_maps_archived_classes_if_there_is_an_archive(tmp_path: Path) -> None:
    jars = tmp_path / "a folder" / "jars"
    jars.mkdir(parents=True)
    without = jvm_options(jars, only_plans=False)

    class_archive(jars).touch()

    assert "Archive" not in " ".join(without)
    # Spark splits the options at spaces, unless they are quoted.
    assert f'"-XX:SharedArchiveFile={jars}.jsa"' in jvm_options(jars, only_plans=False)


def test_the_classes_of_a_checkout_with_a_space_in_its_path_are_archived() -> None:
    # Spark's launcher splits SPARK_SUBMIT_OPTS as a shell does.
    option = quoted_option("ArchiveClassesAtExit", Path("/my games/gl 2/build/jars/spark.unfinished"))

    assert shlex.split(f"-Xlog:disable {option}") == [
        "-Xlog:disable",
        "-XX:ArchiveClassesAtExit=/my games/gl 2/build/jars/spark.unfinished",
    ]
