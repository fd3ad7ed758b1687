#define _GNU_SOURCE
#include "CLinux.h"

#include <fcntl.h>
#include <sys/uio.h>

ssize_t clinux_pread_nowait(int descriptor, void *buffer, size_t bytes, off_t offset) {
    struct iovec part = {buffer, bytes};
    return preadv2(descriptor, &part, 1, offset, RWF_NOWAIT);
}

int clinux_allocate(int descriptor, off_t bytes) { return fallocate(descriptor, 0, 0, bytes); }
