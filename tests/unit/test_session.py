"""Spark's configuration for the lakehouse's store: where it is and how to commit to it, and never a key."""

from gamelake.session import store_options
from gamelake.storage.store import Location

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
