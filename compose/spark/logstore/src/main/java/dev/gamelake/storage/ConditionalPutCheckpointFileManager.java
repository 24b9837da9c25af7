package dev.gamelake.storage;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.Options.CreateFileOptionKeys;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * A stream's checkpoint on an S3 store: each file is put once, under its own name, by one driver only.
 *
 * <p>Set as {@code spark.sql.streaming.checkpointFileManagerClass}. Spark's own managers write a temporary file and rename
 * it, which on S3 is a copy and a delete: two drivers could both commit the same batch.
 */
public final class ConditionalPutCheckpointFileManager extends FileSystemBasedCheckpointFileManager {
  private final boolean isObjectStore;

  /** Called by Spark, by reflection. */
  public ConditionalPutCheckpointFileManager(Path folder, Configuration configuration) throws IOException {
    super(folder, configuration);
    // Queries of the same session may have checkpoints on the local disk, where a rename is atomic.
    isObjectStore = fs().hasPathCapability(folder, CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE);
  }

  @Override
  public CheckpointFileManager.CancellableFSDataOutputStream createAtomic(Path path, boolean overwrite) {
    if (!isObjectStore) {
      return super.createAtomic(path, overwrite);
    }
    try {
      if (overwrite) {
        FSDataOutputStream file = fs().create(path, true);
        return new Upload(file, file::abort);
      }
      NewFile file = new NewFile(fs(), path);
      return new Upload(file, file::abort);
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }

  private static final class Upload extends CheckpointFileManager.CancellableFSDataOutputStream {
    private final Runnable abort;

    Upload(OutputStream file, Runnable abort) {
      super(file);
      this.abort = abort;
    }

    @Override
    public void close() throws IOException {
      try {
        super.close();
      } catch (java.nio.file.FileAlreadyExistsException taken) {
        // Spark interprets this exception as "another query writes here".
        throw (IOException) new FileAlreadyExistsException(taken.getMessage()).initCause(taken);
      }
    }

    @Override
    public void cancel() {
      abort.run();
    }
  }
}
