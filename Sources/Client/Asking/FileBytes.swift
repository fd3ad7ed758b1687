import Glibc

/// Reads whole files that the operator names.
enum FileReader {
    /// A file that cannot be read.
    struct ReadError: Error {
        /// One clause.
        let reason: String

        init(_ reason: String) {
            self.reason = reason
        }

        init(_ number: CInt) {
            switch number {
            case ENOENT, ENOTDIR: reason = "there is no such file"
            case EACCES, EPERM: reason = "permission is denied"
            default: reason = unsafe String(cString: strerror(number))
            }
        }
    }

    /// Bytes of a regular file at most.
    private static let bytesMax = 1 << 20

    /// The bytes of a regular file, and of nothing else, as a node reads its own files.
    static func readRegularFile(_ path: String) throws(ReadError) -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw ReadError(errno) }
        defer { close(descriptor) }
        var facts = stat()
        guard unsafe fstat(descriptor, &facts) == 0 else { throw ReadError(errno) }
        guard facts.st_mode & S_IFMT == S_IFREG else {
            throw ReadError("it is not a regular file")
        }
        guard let bytes = readToEnd(of: descriptor, bytesMax: bytesMax) else {
            throw ReadError(errno)
        }
        guard bytes.count <= bytesMax else {
            throw ReadError("it is larger than \(bytesMax >> 20) MiB")
        }
        return bytes
    }

    /// Everything up to the end of `descriptor`, or until there are more than `bytesMax` bytes; nil
    /// with `errno` if it cannot be read.
    static func readToEnd(of descriptor: CInt, bytesMax: Int = .max) -> [UInt8]? {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while bytes.count <= bytesMax {
            let count = unsafe piece.withUnsafeMutableBytes { room in
                unsafe read(descriptor, room.baseAddress, room.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            guard count > 0 else { break }
            bytes += piece[..<count]
        }
        return bytes
    }
}
