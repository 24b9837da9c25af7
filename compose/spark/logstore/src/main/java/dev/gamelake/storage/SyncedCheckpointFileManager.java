package dev.gamelake.storage;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager;

/**
 * A stream's checkpoint on a local disk: each file is on the disk before it is visible, and before Spark goes on.
 *
 * <p>Set as {@code spark.sql.streaming.checkpointFileManagerClass}. Spark's own manager syncs nothing: a power cut leaves
 * empty files of offsets, with which the query can't start.
 */
public final class SyncedCheckpointFileManager extends FileContextBasedCheckpointFileManager {
  /** Called by Spark, by reflection. */
  public SyncedCheckpointFileManager(Path folder, Configuration configuration) {
    super(folder, configuration);
  }

  @Override
  public void renameTempFile(Path written, Path file, boolean overwrite) {
    sync(written);
    // Throws FileAlreadyExistsException, which Scala does not declare, where another query writes here.
    super.renameTempFile(written, file, overwrite);
    sync(file.getParent());
  }

  private static void sync(Path path) {
    try {
      Disk.sync(java.nio.file.Path.of(path.toUri().getPath()));
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }
}
