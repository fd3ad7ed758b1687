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

        init(_ call: String, _ path: String) {
            self.call = call
            self.path = path
            code = errno
        }

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

    /// The file's size in bytes.
    package func size() throws(Failure) -> UInt64 {
        let end = lseek(descriptor, 0, SEEK_END)
        guard end >= 0 else { throw Failure("seek", path) }
        return UInt64(end)
    }

    /// Allocates the blocks of the first `bytes`, so that no later write into them meets a full
    /// disk.
    package func allocate(_ bytes: UInt64) throws(Failure) {
        while clinux_allocate(descriptor, off_t(bytes)) != 0 {
            guard errno == EINTR else { throw Failure("allocate", path) }
        }
    }

    /// Cuts the file off behind `bytes`.
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

    /// Reads up to `count` bytes at `offset`; fewer only at the file's end.
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

    /// The same without ever waiting for a disk: nil if not all of it is in the page cache.
    package func readAtOnce(_ count: Int, at offset: UInt64) throws(Failure) -> [UInt8]? {
        var code: CInt = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { raw, done in
            let got = unsafe clinux_pread_nowait(
                descriptor, raw.baseAddress, count, off_t(offset))
            if got < 0 { code = errno }
            done = max(0, got)
        }
        if bytes.count == count { return bytes }
        // Where the file system cannot promise it, a disk thread can read all the same.
        guard [0, EAGAIN, EINTR, EOPNOTSUPP, ENOSYS].contains(code) else {
            errno = code
            throw Failure("read", path)
        }
        return nil
    }

    /// Returns when what was written is on the disk.
    package func sync() throws(Failure) {
        while fdatasync(descriptor) != 0 {
            guard errno == EINTR else { throw Failure("sync", path) }
        }
    }

    /// Locks the file for this process, until it is closed; false if another holds it.
    package func lock() throws(Failure) -> Bool {
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
        guard errno == EWOULDBLOCK else { throw Failure("lock", path) }
        return false
    }
}
