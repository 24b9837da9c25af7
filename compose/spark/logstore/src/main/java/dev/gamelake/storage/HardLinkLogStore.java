package dev.gamelake.storage;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;

/**
 * Delta's log on a local disk with concurrent writers, also in other processes: exactly one of them makes each version.
 *
 * <p>Set as {@code spark.delta.logStore.file.impl}. Delta's own store for local disks checks that a version is free and
 * renames its file afterwards, which replaces a version that another process has made in between. A hard link is refused
 * by the file system if the name exists (POSIX {@code link(2)}, EEXIST), and the linked file is complete, also after a
 * power cut.
 */
public final class HardLinkLogStore extends HadoopFileSystemLogStore {
  /** Called by Delta, by reflection. */
  public HardLinkLogStore(Configuration configuration) {
    super(configuration);
  }

  @Override
  public void write(
      org.apache.hadoop.fs.Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration)
      throws IOException {
    Path file = Path.of(path.toUri().getPath());
    Files.createDirectories(file.getParent());
    // Readers of the log skip names of this form.
    Path written = file.getParent().resolve(".%s.%s.tmp".formatted(file.getFileName(), UUID.randomUUID()));
    try {
      writeLines(actions, written);
      Disk.sync(written);
      if (overwrite) {
        Disk.replace(file, written);
      } else {
        // Throws FileAlreadyExistsException, as Delta expects, if another writer has made the version.
        Disk.create(file, written);
      }
      Disk.sync(file.getParent());
    } finally {
      Files.deleteIfExists(written);
    }
  }

  @Override
  public Boolean isPartialWriteVisible(org.apache.hadoop.fs.Path path, Configuration configuration) {
    return false;
  }

  private static void writeLines(Iterator<String> actions, Path file) throws IOException {
    try (Writer out = Files.newBufferedWriter(file)) {
      while (actions.hasNext()) {
        out.write(actions.next());
        out.write('\n');
      }
    }
  }
}
