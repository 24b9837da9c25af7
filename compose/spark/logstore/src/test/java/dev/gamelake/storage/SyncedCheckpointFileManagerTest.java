package dev.gamelake.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SyncedCheckpointFileManagerTest {
  @TempDir private Path offsets;
  private SyncedCheckpointFileManager files;
  private Path batch;

  @BeforeEach
  void open() {
    files = new SyncedCheckpointFileManager(uri(offsets), new Configuration());
    batch = offsets.resolve("7");
  }

  private static org.apache.hadoop.fs.Path uri(Path file) {
    return new org.apache.hadoop.fs.Path(file.toUri());
  }

  private Path written(String content) throws IOException {
    return Files.writeString(offsets.resolve(".7.%s.tmp".formatted(content)), content);
  }

  @Test
  void aWrittenFileGetsItsName() throws IOException {
    Path written = written("offsets");

    files.renameTempFile(uri(written), uri(batch), false);

    assertEquals("offsets", Files.readString(batch));
    assertFalse(Files.exists(written));
  }

  @Test
  void aBatchThatAnotherDriverHasPlannedIsRefusedAsSparkExpectsAndStaysAsItIs() throws IOException {
    files.renameTempFile(uri(written("theirs")), uri(batch), false);
    Path ours = written("ours");

    assertThrows(FileAlreadyExistsException.class, () -> files.renameTempFile(uri(ours), uri(batch), false));

    assertEquals("theirs", Files.readString(batch));
  }

  @Test
  void aFileIsWrittenIntoANewFolder() throws IOException {
    org.apache.hadoop.fs.Path path = uri(offsets.resolve("new folder/8"));
    org.apache.hadoop.fs.Path written = uri(offsets.resolve("new folder/.8.tmp"));

    try (var file = files.createTempFile(written)) {
      file.writeBytes("offsets");
    }
    files.renameTempFile(written, path, false);

    try (var file = files.open(path)) {
      assertEquals("offsets", new String(file.readAllBytes(), StandardCharsets.UTF_8));
    }
    assertEquals(1, files.list(path.getParent()).length);
  }

  @Test
  void aCancelledFileIsNotThere() throws IOException {
    var file = files.createAtomic(uri(batch), false);
    file.writeBytes("half");

    file.cancel();

    assertEquals(0, files.list(uri(offsets)).length);
  }

  @Test
  void aFileTakesThePlaceOfOneThatHadAChecksum() throws IOException {
    Configuration configuration = new Configuration();
    try (var hadoops = uri(batch).getFileSystem(configuration).create(uri(batch))) {
      hadoops.writeBytes("of an earlier version of the platform");
    }

    files.renameTempFile(uri(written("new")), uri(batch), true);

    try (var file = files.open(uri(batch))) {
      assertEquals("new", new String(file.readAllBytes(), StandardCharsets.UTF_8));
    }
  }
}
