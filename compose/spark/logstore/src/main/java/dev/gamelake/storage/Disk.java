package dev.gamelake.storage;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** What a power cut must not undo. */
final class Disk {
  private Disk() {}

  /** Returns when a file's content, or a folder's names, are on the disk. */
  static void sync(Path path) throws IOException {
    try (FileChannel open = FileChannel.open(path, StandardOpenOption.READ)) {
      open.force(true);
    }
  }
}
