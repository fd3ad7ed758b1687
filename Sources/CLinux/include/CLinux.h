// What Swift's Glibc module does not show. Macros and declarations only: no logic.
#ifndef CLINUX_H
#define CLINUX_H

#include <malloc.h>
#include <sys/types.h>

/// preadv2(2) of one buffer with RWF_NOWAIT: fails with EAGAIN instead of waiting for a disk.
ssize_t clinux_pread_nowait(int descriptor, void *buffer, size_t bytes, off_t offset);

/// fallocate(2) with mode 0: allocates the blocks of the file's first bytes and sets its size.
int clinux_allocate(int descriptor, off_t bytes);

/// fallocate(2) with FALLOC_FL_ZERO_RANGE: the file's first bytes are zeros, in blocks that it has.
int clinux_zero(int descriptor, off_t bytes);

/// How many bytes a socket's send buffer has room for; 0 if the system does not tell.
long clinux_socket_room(int socket);

/// sendfile(2): from `offset` of the file to a socket.
ssize_t clinux_send_file(int socket, int descriptor, off_t offset, size_t bytes);

/// cachestat(2), of Linux 6.5: how many pages of this part of the file are in the page cache; -1 if
/// the system does not tell.
long clinux_cached_pages(int descriptor, off_t offset, size_t bytes);

#endif
