package dev.gamelake.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.delta.storage.CloseableIterator;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ConditionalPutLogStoreTest {
  private static final Path VERSION = version(7);
  private final Configuration configuration = ObjectStore.configuration();
  private final ConditionalPutLogStore log = new ConditionalPutLogStore(configuration);

  private static Path version(int number) {
    return new Path("mem://bucket/table/_delta_log/%020d.json".formatted(number));
  }

  @BeforeEach
  void emptyTheStore() {
    ObjectStore.clear();
  }

  private void commit(Path path, String... actions) throws IOException {
    log.write(path, List.of(actions).iterator(), false, configuration);
  }

  private List<String> content(Path path) throws IOException {
    List<String> lines = new ArrayList<>();
    try (CloseableIterator<String> found = log.read(path, configuration)) {
      found.forEachRemaining(lines::add);
    }
    return lines;
  }

  @Test
  void aCommitIsReadAsItWasWritten() throws IOException {
    commit(VERSION, "{\"commitInfo\":{}}", "{\"add\":\"größe\"}");

    assertEquals(List.of("{\"commitInfo\":{}}", "{\"add\":\"größe\"}"), content(VERSION));
  }

  @Test
  void aVersionThatAnotherWriterHasTakenIsRefusedAndStaysAsItIs() throws IOException {
    commit(VERSION, "theirs");

    assertThrows(FileAlreadyExistsException.class, () -> commit(VERSION, "ours"));
    assertEquals(List.of("theirs"), content(VERSION));
  }

  @Test
  void aCommitWhoseReplyWasLostIsKnownAsOnesOwnWhenTheRetryIsRefused() throws IOException {
    ObjectStore.fail(ObjectStore.Fault.REPLY_LOST_AND_RETRIED);

    commit(VERSION, "ours");

    assertEquals(List.of("ours"), content(VERSION));
  }

  @Test
  void aCommitWhoseReplyWasLostForGoodIsKnownAsOnesOwn() throws IOException {
    ObjectStore.fail(ObjectStore.Fault.REPLY_LOST);

    commit(VERSION, "ours");

    assertEquals(List.of("ours"), content(VERSION));
  }

  @Test
  void aCommitThatNeverArrivedFailsAsTheStoreSaidAndNotAsAConflict() {
    ObjectStore.fail(ObjectStore.Fault.REQUEST_LOST);

    IOException failure = assertThrows(IOException.class, () -> commit(VERSION, "ours"));

    assertEquals("connection reset", failure.getMessage());
    assertThrows(FileNotFoundException.class, () -> content(VERSION));
  }

  @Test
  void aCommitWhoseActionsFailHalfWayIsNotWrittenAtAll() {
    Iterator<String> failing =
        IntStream.range(0, 10)
            .mapToObj(
                number -> {
                  if (number == 5) {
                    throw new IllegalStateException("no third attempt");
                  }
                  return "action " + number;
                })
            .iterator();

    assertThrows(IllegalStateException.class, () -> log.write(VERSION, failing, false, configuration));

    assertThrows(FileNotFoundException.class, () -> content(VERSION));
  }

  @Test
  void aFileThatMayBeReplacedIs() throws IOException {
    Path pointer = new Path("mem://bucket/table/_delta_log/_last_checkpoint");
    log.write(pointer, List.of("50").iterator(), true, configuration);
    log.write(pointer, List.of("100").iterator(), true, configuration);

    assertEquals(List.of("100"), content(pointer));
  }

  @Test
  void theListStartsAtAVersionAndIsInOrder() throws IOException {
    for (int number : new int[] {11, 9, 10, 8}) {
      commit(version(number), "version " + number);
    }

    List<Path> found = new ArrayList<>();
    log.listFrom(version(9), configuration).forEachRemaining(status -> found.add(status.getPath()));

    assertEquals(List.of(version(9), version(10), version(11)), found);
  }

  @Test
  void noReaderSeesHalfACommit() {
    assertFalse(log.isPartialWriteVisible(VERSION, configuration));
  }

  @Test
  void eightWritersLoseNoCommitThoughRepliesAreLost() throws Exception {
    int writers = 8;
    int commits = 40;
    ObjectStore.fail(
        IntStream.range(0, 60)
            .mapToObj(n -> n % 2 == 0 ? ObjectStore.Fault.REPLY_LOST : ObjectStore.Fault.REPLY_LOST_AND_RETRIED)
            .toArray(ObjectStore.Fault[]::new));
    Set<String> written = new ConcurrentSkipListSet<>();

    inParallel(
        writers,
        writer -> {
          int next = 0;
          for (int count = 0; count < commits; count++) {
            String content = "writer " + writer + " commit " + count;
            next = commitAt(next, content);
            written.add(content);
          }
        });

    Set<String> found = new TreeSet<>();
    for (int number = 0; number < writers * commits; number++) {
      found.addAll(content(version(number)));
    }
    assertEquals(written, found);
    assertEquals(writers * commits, found.size());
  }

  /** Commits at the first free version from one on, and returns the version after it. */
  private int commitAt(int first, String content) throws IOException {
    for (int number = first; ; number++) {
      try {
        commit(version(number), content);
        return number + 1;
      } catch (FileAlreadyExistsException taken) {
        continue;
      }
    }
  }

  private interface Writer {
    void run(int number) throws IOException;
  }

  private static void inParallel(int writers, Writer writer) throws InterruptedException, ExecutionException {
    List<Callable<Void>> all = new ArrayList<>();
    for (int number = 0; number < writers; number++) {
      int mine = number;
      all.add(
          () -> {
            writer.run(mine);
            return null;
          });
    }
    var threads = Executors.newFixedThreadPool(writers);
    try {
      for (Future<Void> done : threads.invokeAll(all)) {
        done.get();
      }
    } finally {
      threads.shutdown();
    }
  }
}
