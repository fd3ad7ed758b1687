import CLinux
import Glibc

/// A file of the disk tier, with positioned reads and writes; thread-safe.
package final class DiskFile: Sendable {
    private let descriptor: CInt
    /// The file's path, for log lines.
    package let path: String

    /// A failed system call.
    package struct Failure: Error, Hashable, CustomStringConvertible {
        /// The name of the call, such as `write`.
        package let call: String
        /// The path of the file.
        package let path: String
        /// The value of `errno`.
        package let code: CInt

        /// Creates a failure with the error `code`, by default the current `errno`.
        package init(_ call: String, _ path: String, code: CInt = errno) {
            self.call = call
            self.path = path
            self.code = code
        }

        /// True if the file or a directory in its path does not exist.
        package var isMissing: Bool { code == ENOENT || code == ENOTDIR }

        /// True if the file system has no space left for this process, or is read-only.
        package var refusesWrites: Bool { code == ENOSPC || code == EDQUOT || code == EROFS }

        /// The call, the path and the system's text for the error.
        package var description: String {
            "\(call) of \(path) failed: \(unsafe String(cString: strerror(code)))"
        }
    }

    /// Opens the file for reading and writing; creates it, with mode 0600, if it is missing and
    /// `creates` is true.
    package init(_ path: String, creates: Bool) throws(Failure) {
        let flags = O_RDWR | O_CLOEXEC | (creates ? O_CREAT : 0)
        let descriptor = unsafe open(path, flags, 0o600)
        guard descriptor >= 0 else { throw Failure("open", path) }
        self.descriptor = descriptor
        self.path = path
    }

    deinit {
        close(descriptor)
    }

    /// Returns the size of the file in bytes.
    package func size() throws(Failure) -> UInt64 {
        let end = lseek(descriptor, 0, SEEK_END)
        guard end >= 0 else { throw Failure("seek", path) }
        return UInt64(end)
    }

    /// Allocates the blocks of the first `bytes`, so that no later write to them fails on a full
    /// disk.
    package func allocate(_ bytes: UInt64) throws(Failure) {
        while clinux_allocate(descriptor, off_t(bytes)) != 0 {
            guard errno == EINTR else { throw Failure("allocate", path) }
        }
    }

    /// Replaces the file's pages with zeros in new pages, so that data a socket has yet to send
    /// from the old pages is not overwritten.
    ///
    /// The file has `bytes` and their blocks before and afterwards. A file system that frees the
    /// blocks first (XFS, and where the call is unsupported) may lose them to another program if
    /// the disk is full; then the call fails, and the segment cannot be used.
    package func replaceWithZeros(_ bytes: UInt64) throws(Failure) {
        while clinux_zero(descriptor, off_t(bytes)) != 0 {
            if errno == EINTR { continue }
            guard errno == EOPNOTSUPP else { throw Failure("renew", path) }
            try truncate(to: 0)
            return try allocate(bytes)
        }
    }

    /// Sets the size of the file to `bytes`.
    package func truncate(to bytes: UInt64) throws(Failure) {
        guard ftruncate(descriptor, off_t(bytes)) == 0 else { throw Failure("truncate", path) }
    }

    /// Writes all of `bytes` at `offset`.
    package func write(_ bytes: Span<UInt8>, at offset: UInt64) throws(Failure) {
        var done = 0
        while done < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { raw in
                guard let base = raw.baseAddress else { return 0 }
                return unsafe pwrite(
                    descriptor, base + done, raw.count - done, off_t(offset) + off_t(done))
            }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw Failure("write", path) }
            done += count
        }
    }

    /// Returns up to `count` bytes at `offset`; fewer only at the end of the file.
    package func read(_ count: Int, at offset: UInt64) throws(Failure) -> [UInt8] {
        var failure: Failure?
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { raw, done in
            while done < count, let base = raw.baseAddress {
                let got = unsafe pread(
                    descriptor, base + done, count - done,
                    off_t(offset) + off_t(done))
                if got < 0 && errno == EINTR { continue }
                if got < 0 { failure = Failure("read", path) }
                guard got > 0 else { return }
                done += got
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Fills `room` from `offset` without waiting for the disk; false if a part is not in the page
    /// cache.
    @unsafe package func readNonblocking(
        at offset: UInt64, into room: UnsafeMutableRawBufferPointer
    ) throws(Failure) -> Bool {
        let got = unsafe clinux_pread_nowait(
            descriptor, room.baseAddress, room.count, off_t(offset))
        if got == room.count { return true }
        // Where the file system does not support this, a disk thread can still read.
        guard got >= 0 || [EAGAIN, EINTR, EOPNOTSUPP, ENOSYS].contains(errno) else {
            throw Failure("read", path)
        }
        return false
    }

    /// Returns true if all of these bytes are in the page cache.
    package func isCached(_ count: Int, at offset: UInt64) -> Bool {
        let page = UInt64(sysconf(Int32(_SC_PAGESIZE)))
        let pages = (offset + UInt64(count) - 1) / page - offset / page + 1
        return clinux_cached_pages(descriptor, off_t(offset), count) == Int(pages)
    }

    /// Sends bytes to a socket without a copy; returns how many the socket accepted, fewer if it is
    /// full or fails.
    package func send(_ count: Int, at offset: UInt64, to socket: CInt) -> Int {
        var sent = 0
        while sent < count {
            let part = min(count - sent, Self.sendBytesMax)
            let taken = clinux_send_file(socket, descriptor, off_t(offset) + off_t(sent), part)
            if taken < 0, errno == EINTR { continue }
            sent += max(0, taken)
            guard taken == part else { break }
        }
        return sent
    }

    /// Smaller than what the system moves through its pipe at once: 100 KB in one call cost two and
    /// a half times as much as in pieces (loopback, Linux 6.18).
    private static let sendBytesMax = 56 << 10

    /// Returns once written data is on the disk.
    package func sync() throws(Failure) {
        while fdatasync(descriptor) != 0 {
            guard errno == EINTR else { throw Failure("sync", path) }
        }
    }

    /// Advises the kernel that these bytes will be read soon; does not block.
    package func adviseReadahead(_ count: Int, at offset: UInt64) {
        // Ignored advice affects only speed.
        _ = posix_fadvise(descriptor, off_t(offset), off_t(count), POSIX_FADV_WILLNEED)
    }

    /// Writes dirty pages and drops the file's pages from the page cache, so that the next read
    /// goes to the disk.
    package func dropFromPageCache() throws(Failure) {
        try sync()
        guard posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0 else {
            throw Failure("advise", path)
        }
    }

    /// Locks the file for this process until it is closed; false if another process holds the lock.
    package func lock() throws(Failure) -> Bool {
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
        guard errno == EWOULDBLOCK else { throw Failure("lock", path) }
        return false
    }

    /// The inode and block usage of the open file; `nil` if the system does not report them.
    var status: Status? {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { return nil }
        return Status(status)
    }

    /// The inode of a file, and the bytes of its blocks.
    struct Status {
        let inode: UInt64
        let allocated: UInt64

        init(_ status: stat) {
            inode = UInt64(status.st_ino)
            allocated = UInt64(status.st_blocks) * 512
        }
    }
}
