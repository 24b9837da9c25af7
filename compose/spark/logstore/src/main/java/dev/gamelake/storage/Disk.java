package dev.gamelake.storage;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/** Files on a local disk that a power cut leaves whole or undone, and that one of several writers makes. */
final class Disk {
  private Disk() {}

  /** Returns when a file's content, or a folder's names, are on the disk. */
  static void sync(Path path) throws IOException {
    try (FileChannel open = FileChannel.open(path, StandardOpenOption.READ)) {
      open.force(true);
    }
  }

  /**
   * Gives a written file another name too.
   *
   * @throws FileAlreadyExistsException another writer has made a file of that name, which stays as it is.
   */
  static void create(Path file, Path written) throws IOException {
    Files.deleteIfExists(checksumOf(file));
    try {
      Files.createLink(file, written);
    } catch (UnsupportedOperationException withoutLinks) {
      throw (IOException)
          new FileSystemException(
                  file.toString(), null, "a lakehouse needs a file system with hard links; move it to one")
              .initCause(withoutLinks);
    }
  }

  /** Moves a written file to another name, in the place of a file that has it. */
  static void replace(Path file, Path written) throws IOException {
    Files.deleteIfExists(checksumOf(file));
    Files.move(written, file, StandardCopyOption.ATOMIC_MOVE);
  }

  /** Hadoop's checksum of an earlier file of this name, by which Hadoop would call the new one corrupt. */
  private static Path checksumOf(Path file) {
    return file.getParent().resolve(".%s.crc".formatted(file.getFileName()));
  }
}
