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
 * A file that appears whole when it is closed, and only if no other writer has made it by then.
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

  /** Starts a file; nothing can be seen of it before {@link #close()}. */
  NewFile(FileSystem store, Path path) throws IOException {
    this.store = store;
    this.path = path;
    // must(): a file system that can't do it refuses, instead of overwriting what another writer has put there.
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
   * @throws FileAlreadyExistsException another writer has made the file.
   * @throws IOException the store failed, and the file is not there.
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
      // The reply may be lost though the file was put; the client's own retry is then refused. What the store holds tells.
      if (!isOurs(failure)) {
        throw (IOException) new FileAlreadyExistsException(path.toString()).initCause(failure);
      }
    }
  }

  /** Gives the file up: the store never gets it. Does nothing once it is closed. */
  void abort() {
    if (!ended) {
      ended = true;
      upload.abort();
    }
  }

  /** Whether the file that is there holds what was written here; if there is none, the failure stands. */
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
