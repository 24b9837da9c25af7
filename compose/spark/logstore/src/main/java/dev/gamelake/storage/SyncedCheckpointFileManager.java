package dev.gamelake.storage;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * A stream's checkpoint on a local disk: each file is on the disk before it is visible, and before Spark continues.
 *
 * <p>Set as {@code spark.sql.streaming.checkpointFileManagerClass}. Spark's own manager syncs nothing: a power cut leaves
 * empty files of offsets, with which the query can't start. Two drivers can both see that a name is free, and the second
 * replaces the first one's file; a hard link is refused if the name exists (POSIX {@code link(2)}, EEXIST). And Hadoop's
 * {@code FileContext} starts a process to ask whether a file is a link, eight times a batch, which took a quarter of a
 * small batch's time.
 */
public final class SyncedCheckpointFileManager extends FileSystemBasedCheckpointFileManager {
  /** Called by Spark, by reflection. */
  public SyncedCheckpointFileManager(org.apache.hadoop.fs.Path folder, Configuration configuration) {
    super(folder, configuration);
  }

  @Override
  public FSDataOutputStream createTempFile(org.apache.hadoop.fs.Path file) {
    Path path = onDisk(file);
    try {
      Files.createDirectories(path.getParent());
      return new FSDataOutputStream(Files.newOutputStream(path), null);
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }

  @Override
  public void renameTempFile(org.apache.hadoop.fs.Path written, org.apache.hadoop.fs.Path file, boolean overwrite) {
    try {
      rename(onDisk(written), onDisk(file), overwrite);
    } catch (java.nio.file.FileAlreadyExistsException taken) {
      // Spark interprets this exception as "another query writes here"; Scala does not declare it.
      throw SyncedCheckpointFileManager.<RuntimeException>unchecked(new FileAlreadyExistsException(file.toString()));
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }

  private static void rename(Path written, Path file, boolean overwrite) throws IOException {
    Disk.sync(written);
    if (overwrite) {
      Disk.replace(file, written);
    } else {
      Disk.create(file, written);
      Files.delete(written);
    }
    Disk.sync(file.getParent());
  }

  private static Path onDisk(org.apache.hadoop.fs.Path path) {
    return Path.of(path.toUri().getPath());
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> T unchecked(Throwable thrown) throws T {
    throw (T) thrown;
  }
}
