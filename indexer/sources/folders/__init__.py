"""SOURCE arguments and the files of folders: globs, ignored files, Maildirs, and the walk."""
