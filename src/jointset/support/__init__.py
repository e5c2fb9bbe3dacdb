"""What every room uses and none owns: files, folders, extras, names on demand."""
