package dev.gamelake.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.delta.storage.CloseableIterator;
import io.delta.storage.LocalLogStore;
import io.delta.storage.LogStore;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HardLinkLogStoreTest {
  private final Configuration configuration = new Configuration();
  private final LogStore log = new HardLinkLogStore(configuration);
  @TempDir private Path table;
  private Path version;

  @BeforeEach
  void makeTheLog() throws IOException {
    version = version(7);
    Files.createDirectories(version.getParent());
  }

  private Path version(int number) {
    return table.resolve("_delta_log/%020d.json".formatted(number));
  }

  private static org.apache.hadoop.fs.Path uri(Path file) {
    return new org.apache.hadoop.fs.Path(file.toUri());
  }

  private void commit(Path file, String... actions) throws IOException {
    log.write(uri(file), List.of(actions).iterator(), false, configuration);
  }

  private List<String> content(Path file) throws IOException {
    List<String> lines = new ArrayList<>();
    try (CloseableIterator<String> found = log.read(uri(file), configuration)) {
      found.forEachRemaining(lines::add);
    }
    return lines;
  }

  private Set<String> names() throws IOException {
    Set<String> names = new TreeSet<>();
    try (Stream<Path> files = Files.list(version.getParent())) {
      files.forEach(file -> names.add(file.getFileName().toString()));
    }
    return names;
  }

  /** Actions of ours, during whose writing another process makes the version. */
  private Iterator<String> actionsWhileAnotherCommits() {
    return Stream.of("ours")
        .map(
            action -> {
              try {
                Files.writeString(version, "theirs\n");
              } catch (IOException failure) {
                throw new IllegalStateException(failure);
              }
              return action;
            })
        .iterator();
  }

  @Test
  void aCommitIsReadAsItWasWrittenAndLeavesNoOtherFile() throws IOException {
    commit(version, "{\"commitInfo\":{}}", "{\"add\":\"größe 𠮷\"}");

    assertEquals(List.of("{\"commitInfo\":{}}", "{\"add\":\"größe 𠮷\"}"), content(version));
    assertEquals(Set.of(version.getFileName().toString()), names());
  }

  @Test
  void aVersionThatAnotherWriterHasMadeIsRefusedAndStaysAsItIs() throws IOException {
    commit(version, "theirs");

    assertThrows(FileAlreadyExistsException.class, () -> commit(version, "ours"));

    assertEquals(List.of("theirs"), content(version));
    assertEquals(Set.of(version.getFileName().toString()), names());
  }

  @Test
  void aVersionThatAnotherProcessMakesWhileOursIsWrittenIsRefusedAndStaysAsItIs() throws IOException {
    assertThrows(
        FileAlreadyExistsException.class,
        () -> log.write(uri(version), actionsWhileAnotherCommits(), false, configuration));

    assertEquals(List.of("theirs"), content(version));
  }

  /** The reason for this class; once Delta's own store refuses, the class can go. */
  @Test
  void deltasOwnStoreReplacesAVersionThatAnotherProcessMakesMeanwhile() throws IOException {
    LogStore deltas = new LocalLogStore(configuration);

    deltas.write(uri(version), actionsWhileAnotherCommits(), false, configuration);

    assertEquals(List.of("ours"), content(version));
  }

  @Test
  void aCommitWhoseActionsFailHalfWayIsNotWrittenAtAll() throws IOException {
    Iterator<String> failing =
        Stream.of(1, 2, 3)
            .map(
                number -> {
                  if (number == 2) {
                    throw new IllegalStateException("no third attempt");
                  }
                  return "action " + number;
                })
            .iterator();

    assertThrows(IllegalStateException.class, () -> log.write(uri(version), failing, false, configuration));

    assertEquals(Set.of(), names());
  }

  @Test
  void aFileThatMayBeReplacedIsThoughHadoopKeptAChecksumOfTheOldOne() throws IOException {
    Path pointer = version.getParent().resolve("_last_checkpoint");
    new LocalLogStore(configuration).write(uri(pointer), List.of("50").iterator(), true, configuration);

    log.write(uri(pointer), List.of("100").iterator(), true, configuration);

    assertEquals(List.of("100"), content(pointer));
  }

  @Test
  void aVersionIsReadThoughHadoopKeptAChecksumOfADeletedOne() throws IOException {
    new LocalLogStore(configuration).write(uri(version), List.of("old").iterator(), false, configuration);
    Files.delete(version);

    commit(version, "new");

    assertEquals(List.of("new"), content(version));
  }

  @Test
  void noReaderSeesHalfACommit() throws IOException {
    assertFalse(log.isPartialWriteVisible(uri(version), configuration));
  }

  @Test
  void eightWritersLoseNoCommit() throws Exception {
    int writers = 8;
    int commits = 40;
    Set<String> written = new ConcurrentSkipListSet<>();
    List<Callable<Void>> all = new ArrayList<>();
    for (int number = 0; number < writers; number++) {
      int writer = number;
      all.add(
          () -> {
            int next = 0;
            for (int count = 0; count < commits; count++) {
              String content = "writer " + writer + " commit " + count;
              next = commitAt(next, content);
              written.add(content);
            }
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
}
