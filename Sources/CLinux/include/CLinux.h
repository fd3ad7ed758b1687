// What Swift's Glibc module does not show. Macros and declarations only: no logic.
#ifndef CLINUX_H
#define CLINUX_H

#include <malloc.h>
#include <sys/types.h>

/// preadv2(2) of one buffer with RWF_NOWAIT: fails with EAGAIN instead of waiting for a disk.
ssize_t clinux_pread_nowait(int descriptor, void *buffer, size_t bytes, off_t offset);

/// fallocate(2) with mode 0: allocates the blocks of the file's first bytes and sets its size.
int clinux_allocate(int descriptor, off_t bytes);

#endif
