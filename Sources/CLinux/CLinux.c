#define _GNU_SOURCE
#include "CLinux.h"

#include <fcntl.h>
#include <linux/sock_diag.h>
#include <stdint.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
#ifndef FALLOC_FL_ZERO_RANGE
#define FALLOC_FL_ZERO_RANGE 0x10
#endif

ssize_t clinux_pread_nowait(int descriptor, void *buffer, size_t bytes, off_t offset) {
    struct iovec part = {buffer, bytes};
    return preadv2(descriptor, &part, 1, offset, RWF_NOWAIT);
}

int clinux_allocate(int descriptor, off_t bytes) { return fallocate(descriptor, 0, 0, bytes); }

int clinux_zero(int descriptor, off_t bytes) {
    return fallocate(descriptor, FALLOC_FL_ZERO_RANGE, 0, bytes);
}

long clinux_socket_room(int socket) {
    uint32_t figures[SK_MEMINFO_VARS] = {0};
    socklen_t bytes = sizeof figures;
    if (getsockopt(socket, SOL_SOCKET, SO_MEMINFO, figures, &bytes) != 0) return 0;
    return (long)figures[SK_MEMINFO_SNDBUF] - (long)figures[SK_MEMINFO_WMEM_QUEUED];
}

ssize_t clinux_send_file(int socket, int descriptor, off_t offset, size_t bytes) {
    return sendfile(socket, descriptor, &offset, bytes);
}

long clinux_cached_pages(int descriptor, off_t offset, size_t bytes) {
    struct { uint64_t offset, bytes; } part = {(uint64_t)offset, bytes};
    struct { uint64_t cached, dirty, writeback, evicted, recentlyEvicted; } pages;
    return syscall(SYS_cachestat, descriptor, &part, &pages, 0) == 0 ? (long)pages.cached : -1;
}
