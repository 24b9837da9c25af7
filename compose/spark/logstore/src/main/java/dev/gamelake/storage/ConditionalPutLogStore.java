package dev.gamelake.storage;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log on an S3 store with concurrent writers: exactly one of them puts each version.
 *
 * <p>Set as {@code spark.delta.logStore.s3.impl} and {@code spark.delta.logStore.s3a.impl}. It relies on S3's guarantees:
 * a conditional put has one winner, an object appears complete, and a list shows every object put before it.
 */
public final class ConditionalPutLogStore extends HadoopFileSystemLogStore {
  /** Called by Delta, by reflection. */
  public ConditionalPutLogStore(Configuration configuration) {
    super(configuration);
  }

  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration)
      throws IOException {
    FileSystem store = path.getFileSystem(configuration);
    if (overwrite) {
      replace(store, path, actions);
    } else {
      create(store, path, actions);
    }
  }

  @Override
  public Boolean isPartialWriteVisible(Path path, Configuration configuration) {
    return false;
  }

  private static void create(FileSystem store, Path path, Iterator<String> actions) throws IOException {
    NewFile file = new NewFile(store, path);
    try {
      writeLines(actions, file);
      file.close();
    } finally {
      // An incomplete commit must not be put, which closing its stream would do.
      file.abort();
    }
  }

  private static void replace(FileSystem store, Path path, Iterator<String> actions) throws IOException {
    var file = store.create(path, true);
    try {
      writeLines(actions, file);
    } catch (IOException | RuntimeException | Error failure) {
      file.abort();
      throw failure;
    }
    file.close();
  }

  private static void writeLines(Iterator<String> actions, OutputStream out) throws IOException {
    while (actions.hasNext()) {
      out.write((actions.next() + "\n").getBytes(StandardCharsets.UTF_8));
    }
  }
}
