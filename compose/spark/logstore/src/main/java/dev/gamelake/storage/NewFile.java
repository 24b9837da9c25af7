package dev.gamelake.storage;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.FileAlreadyExistsException;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options.CreateFileOptionKeys;
import org.apache.hadoop.fs.Path;

/**
 * A file that appears complete when it is closed, and only if no other writer has created it by then.
 *
 * <p>Source: Hadoop's file system specification, {@code FileSystem.createFile()}, option {@code
 * fs.option.create.conditional.overwrite}.
 */
final class NewFile extends OutputStream {
  private final FileSystem store;
  private final Path path;
  private final FSDataOutputStream upload;
  private final MessageDigest digest = sha256();
  private boolean ended;

  /** Starts a file, which is not visible before {@link #close()}. */
  NewFile(FileSystem store, Path path) throws IOException {
    this.store = store;
    this.path = path;
    // must(): a file system without the option fails, instead of overwriting another writer's file.
    this.upload =
        (FSDataOutputStream)
            store
                .createFile(path)
                .recursive()
                .overwrite(true)
                .must(CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE, true)
                .build();
  }

  @Override
  public void write(int value) throws IOException {
    upload.write(value);
    digest.update((byte) value);
  }

  @Override
  public void write(byte[] bytes, int from, int length) throws IOException {
    upload.write(bytes, from, length);
    digest.update(bytes, from, length);
  }

  /**
   * Puts the file into the store.
   *
   * @throws FileAlreadyExistsException another writer has created the file.
   * @throws IOException the store failed, and the file does not exist.
   */
  @Override
  public void close() throws IOException {
    if (ended) {
      return;
    }
    ended = true;
    try {
      upload.close();
    } catch (IOException failure) {
      // The response may be lost although the put succeeded, and the client's retry then fails: compare the contents.
      if (!isOurs(failure)) {
        throw (IOException) new FileAlreadyExistsException(path.toString()).initCause(failure);
      }
    }
  }

  /** Discards the file, which is then never put. Does nothing after {@link #close()}. */
  void abort() {
    if (!ended) {
      ended = true;
      upload.abort();
    }
  }

  /** Whether the existing file has the content of this one; throws the failure if there is no file. */
  private boolean isOurs(IOException failure) throws IOException {
    MessageDigest found = sha256();
    try (InputStream in = new DigestInputStream(store.open(path), found)) {
      in.transferTo(OutputStream.nullOutputStream());
    } catch (IOException unreadable) {
      failure.addSuppressed(unreadable);
      throw failure;
    }
    return MessageDigest.isEqual(found.digest(), digest.digest());
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException("every Java has SHA-256", impossible);
    }
  }
}
