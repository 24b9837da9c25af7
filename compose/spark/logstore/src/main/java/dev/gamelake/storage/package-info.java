/**
 * Files that are put into an object store only if they are not there yet, for Delta's log and for streams' checkpoints.
 * Nothing here knows what stands in such a file.
 */
package dev.gamelake.storage;
