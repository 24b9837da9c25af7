package dev.gamelake.storage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ConditionalPutCheckpointFileManagerTest {
  private static final Path OFFSETS = new Path("mem://bucket/checkpoint/offsets");
  private static final Path BATCH = new Path(OFFSETS, "7");
  private final ConditionalPutCheckpointFileManager files = manager(OFFSETS);

  private static ConditionalPutCheckpointFileManager manager(Path folder) {
    try {
      return new ConditionalPutCheckpointFileManager(folder, ObjectStore.configuration());
    } catch (IOException failure) {
      throw new AssertionError(failure);
    }
  }

  @BeforeEach
  void emptyTheStore() {
    ObjectStore.clear();
  }

  private static CancellableFSDataOutputStream started(
      ConditionalPutCheckpointFileManager files, Path path, String content, boolean overwrite) throws IOException {
    CancellableFSDataOutputStream file = files.createAtomic(path, overwrite);
    file.write(content.getBytes(StandardCharsets.UTF_8));
    return file;
  }

  private void write(String content) throws IOException {
    started(files, BATCH, content, false).close();
  }

  private String content() throws IOException {
    try (var in = files.open(BATCH)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  @Test
  void aFileIsThereUnderItsOwnNameOnceItIsClosedAndNotBefore() throws IOException {
    CancellableFSDataOutputStream file = started(files, BATCH, "offsets", false);
    assertFalse(files.exists(BATCH));

    file.close();

    assertEquals("offsets", content());
    assertArrayEquals(new Path[] {BATCH}, Arrays.stream(files.list(OFFSETS)).map(FileStatus::getPath).toArray());
  }

  @Test
  void aBatchThatAnotherDriverHasPlannedIsRefusedAsSparkExpectsAndStaysAsItIs() throws IOException {
    CancellableFSDataOutputStream ours = started(files, BATCH, "ours", false);
    write("theirs");

    assertThrows(FileAlreadyExistsException.class, ours::close);
    ours.cancel();

    assertEquals("theirs", content());
  }

  @Test
  void aFileWhoseReplyWasLostIsKnownAsOnesOwn() throws IOException {
    ObjectStore.fail(ObjectStore.Fault.REPLY_LOST_AND_RETRIED);

    write("ours");

    assertEquals("ours", content());
  }

  @Test
  void aFileThatIsCancelledNeverAppears() throws IOException {
    for (boolean overwrite : new boolean[] {false, true}) {
      CancellableFSDataOutputStream file = started(files, BATCH, "half of", overwrite);
      file.cancel();
      file.close();

      assertFalse(files.exists(BATCH));
    }
  }

  @Test
  void aFileThatMayBeReplacedIs() throws IOException {
    write("first");

    started(files, BATCH, "second", true).close();

    assertEquals("second", content());
  }
}
