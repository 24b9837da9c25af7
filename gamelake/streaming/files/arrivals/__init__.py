"""The arrival of files: notifications, the landing bucket, and objects that were never notified."""
