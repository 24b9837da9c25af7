package dev.gamelake.storage;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Abortable;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options.CreateFileOptionKeys;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * An object store in memory that behaves as S3 does through S3A: an object appears when its stream is closed, a
 * conditional put has one winner, and a put whose reply was lost is tried again.
 */
public final class ObjectStore extends FileSystem {
  /** What goes wrong with a put. */
  enum Fault {
    /** The object is put, its reply is lost, and the client's retry is refused because the object is there. */
    REPLY_LOST_AND_RETRIED,
    /** The object is put, its reply is lost, and the client has no retry left. */
    REPLY_LOST,
    /** The object is not put. */
    REQUEST_LOST
  }

  private static final Map<String, byte[]> OBJECTS = new ConcurrentSkipListMap<>();
  private static final Queue<Fault> FAULTS = new ConcurrentLinkedQueue<>();

  /** Empties the store, which all instances share. */
  static void clear() {
    OBJECTS.clear();
    FAULTS.clear();
  }

  /** Has the next puts fail, one fault each. */
  static void fail(Fault... faults) {
    FAULTS.addAll(List.of(faults));
  }

  /** A configuration under which `mem:` paths lead here. */
  static Configuration configuration() {
    Configuration configuration = new Configuration(false);
    configuration.set("fs.mem.impl", ObjectStore.class.getName());
    return configuration;
  }

  private static void put(Path path, byte[] content, boolean onlyIfAbsent) throws IOException {
    Fault fault = FAULTS.poll();
    if (fault == Fault.REQUEST_LOST) {
      throw new IOException("connection reset");
    }
    if (!onlyIfAbsent) {
      OBJECTS.put(path.toString(), content);
    } else if (OBJECTS.putIfAbsent(path.toString(), content) != null || fault == Fault.REPLY_LOST_AND_RETRIED) {
      throw new IOException("412 Precondition Failed");
    }
    if (fault == Fault.REPLY_LOST) {
      throw new IOException("timeout");
    }
  }

  @Override
  public URI getUri() {
    return URI.create("mem://bucket");
  }

  @Override
  public boolean hasPathCapability(Path path, String capability) {
    return CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE.equals(capability);
  }

  @Override
  public FSDataOutputStreamBuilder<?, ?> createFile(Path path) {
    return new Builder(this, path);
  }

  @Override
  public FSDataOutputStream create(
      Path path, FsPermission permission, boolean overwrite, int buffer, short copies, long block, Progressable progress) {
    return new FSDataOutputStream(new Upload(path, false), null);
  }

  @Override
  public FSDataInputStream open(Path path, int buffer) throws IOException {
    byte[] content = OBJECTS.get(path.toString());
    if (content == null) {
      throw new FileNotFoundException(path.toString());
    }
    return new FSDataInputStream(new Download(content));
  }

  @Override
  public FileStatus[] listStatus(Path folder) {
    return OBJECTS.keySet().stream()
        .map(Path::new)
        .filter(path -> path.getParent().equals(folder))
        .map(this::status)
        .toArray(FileStatus[]::new);
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    boolean isFolder = OBJECTS.keySet().stream().anyMatch(key -> key.startsWith(path + "/"));
    if (!isFolder && !OBJECTS.containsKey(path.toString())) {
      throw new FileNotFoundException(path.toString());
    }
    return isFolder ? new FileStatus(0, true, 1, 1, 0, path) : status(path);
  }

  private FileStatus status(Path path) {
    return new FileStatus(OBJECTS.get(path.toString()).length, false, 1, 1, 0, path);
  }

  @Override
  public boolean delete(Path path, boolean recursive) {
    return OBJECTS.remove(path.toString()) != null;
  }

  @Override
  public boolean mkdirs(Path path, FsPermission permission) {
    return true;
  }

  @Override
  public FSDataOutputStream append(Path path, int buffer, Progressable progress) {
    throw new UnsupportedOperationException("objects are not appended to");
  }

  @Override
  public boolean rename(Path from, Path to) {
    throw new UnsupportedOperationException("a rename is a copy, and nothing here may need one");
  }

  @Override
  public void setWorkingDirectory(Path path) {
    throw new UnsupportedOperationException("there is none");
  }

  @Override
  public Path getWorkingDirectory() {
    return new Path("mem://bucket/");
  }

  private static final class Builder extends FSDataOutputStreamBuilder<FSDataOutputStream, Builder> {
    Builder(FileSystem store, Path path) {
      super(store, path);
    }

    @Override
    public Builder getThisBuilder() {
      return this;
    }

    @Override
    public FSDataOutputStream build() {
      boolean onlyIfAbsent = getOptions().getBoolean(CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE, false);
      return new FSDataOutputStream(new Upload(getPath(), onlyIfAbsent), null);
    }
  }

  private static final class Upload extends ByteArrayOutputStream implements Abortable {
    private final Path path;
    private final boolean onlyIfAbsent;
    private boolean ended;

    Upload(Path path, boolean onlyIfAbsent) {
      this.path = path;
      this.onlyIfAbsent = onlyIfAbsent;
    }

    @Override
    public void close() throws IOException {
      if (!ended) {
        ended = true;
        put(path, toByteArray(), onlyIfAbsent);
      }
    }

    @Override
    public AbortableResult abort() {
      ended = true;
      return null;
    }
  }

  private static final class Download extends FSInputStream {
    private final byte[] content;
    private ByteArrayInputStream rest;

    Download(byte[] content) {
      this.content = content;
      this.rest = new ByteArrayInputStream(content);
    }

    @Override
    public int read() {
      return rest.read();
    }

    @Override
    public void seek(long position) {
      int from = Math.toIntExact(position);
      rest = new ByteArrayInputStream(content, from, content.length - from);
    }

    @Override
    public long getPos() {
      return content.length - rest.available();
    }

    @Override
    public boolean seekToNewSource(long position) {
      return false;
    }
  }
}
