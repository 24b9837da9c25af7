/**
 * Files that are put into an object store only if they don't exist yet, for Delta's log and for streams' checkpoints.
 * The classes don't depend on the files' contents.
 */
package dev.gamelake.storage;
