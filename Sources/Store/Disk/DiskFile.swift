import CLinux
import Glibc

/// A file of the disk tier: positioned reads and writes, from any thread.
package final class DiskFile: Sendable {
    private let descriptor: CInt
    /// The file's path, for log lines.
    package let path: String

    /// What a call of the system refused.
    package struct Failure: Error, Hashable, CustomStringConvertible {
        /// What was tried, as in `write`.
        package let call: String
        package let path: String
        package let code: CInt

        /// The system's error is `code`, or what `errno` says.
        package init(_ call: String, _ path: String, code: CInt = errno) {
            self.call = call
            self.path = path
            self.code = code
        }

        /// True if what was looked for is not there.
        package var isMissing: Bool { code == ENOENT || code == ENOTDIR }

        package var description: String {
            "\(call) of \(path) failed: \(unsafe String(cString: strerror(code)))"
        }
    }

    /// Opens the file for reading and writing, and makes it if it is missing and `creates`.
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

    package func size() throws(Failure) -> UInt64 {
        let end = lseek(descriptor, 0, SEEK_END)
        guard end >= 0 else { throw Failure("seek", path) }
        return UInt64(end)
    }

    /// No later write into the blocks meets a full disk.
    package func allocate(_ bytes: UInt64) throws(Failure) {
        while clinux_allocate(descriptor, off_t(bytes)) != 0 {
            guard errno == EINTR else { throw Failure("allocate", path) }
        }
    }

    /// Gives the file other pages, all zeros: what a socket has yet to send of the former ones is
    /// not written over.
    ///
    /// The file has `bytes`, and their blocks, before and afterwards. On a file system that frees
    /// them first (XFS, and where the call is not known) another program may take them meanwhile,
    /// if the disk is full: then it fails, and the segment cannot be used.
    package func replaceWithZeros(_ bytes: UInt64) throws(Failure) {
        while clinux_zero(descriptor, off_t(bytes)) != 0 {
            if errno == EINTR { continue }
            guard errno == EOPNOTSUPP else { throw Failure("renew", path) }
            try truncate(to: 0)
            return try allocate(bytes)
        }
    }

    package func truncate(to bytes: UInt64) throws(Failure) {
        guard ftruncate(descriptor, off_t(bytes)) == 0 else { throw Failure("truncate", path) }
    }

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

    @unsafe package func readNonblocking(
        at offset: UInt64, into room: UnsafeMutableRawBufferPointer
    ) throws(Failure) -> Bool {
        let got = unsafe clinux_pread_nowait(
            descriptor, room.baseAddress, room.count, off_t(offset))
        if got == room.count { return true }
        // Where the file system cannot promise it, a disk thread can read all the same.
        guard got >= 0 || [EAGAIN, EINTR, EOPNOTSUPP, ENOSYS].contains(errno) else {
            throw Failure("read", path)
        }
        return false
    }

    package func isCached(_ count: Int, at offset: UInt64) -> Bool {
        let page = UInt64(sysconf(Int32(_SC_PAGESIZE)))
        let pages = (offset + UInt64(count) - 1) / page - offset / page + 1
        return clinux_cached_pages(descriptor, off_t(offset), count) == Int(pages)
    }

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

    /// Less than the system moves through its pipe in one go: 100 KB in one call cost two and a
    /// half times as much as in pieces (loopback, Linux 6.18).
    private static let sendBytesMax = 56 << 10

    package func sync() throws(Failure) {
        while fdatasync(descriptor) != 0 {
            guard errno == EINTR else { throw Failure("sync", path) }
        }
    }

    package func adviseReadahead(_ count: Int, at offset: UInt64) {
        // An advice that is not taken changes nothing but time.
        _ = posix_fadvise(descriptor, off_t(offset), off_t(count), POSIX_FADV_WILLNEED)
    }

    /// Writes what is dirty and lets go of the file's pages, so that the next read is one of the
    /// disk.
    package func dropFromPageCache() throws(Failure) {
        try sync()
        guard posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0 else {
            throw Failure("advise", path)
        }
    }

    /// Locks the file for this process, until it is closed; false if another holds it.
    package func lock() throws(Failure) -> Bool {
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
        guard errno == EWOULDBLOCK else { throw Failure("lock", path) }
        return false
    }

    /// What the system knows of the open file; nil if it tells nothing.
    var status: Status? {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { return nil }
        return Status(status)
    }

    /// A file's number, and what its blocks take.
    struct Status {
        let inode: UInt64
        let allocated: UInt64

        init(_ status: stat) {
            inode = UInt64(status.st_ino)
            allocated = UInt64(status.st_blocks) * 512
        }
    }
}
