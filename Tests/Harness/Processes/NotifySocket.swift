import Foundation
import Glibc

/// A socket on which a service manager receives notifications: the receiver of sd_notify(3).
package final class NotifySocket: Sendable {
    /// The value of `NOTIFY_SOCKET`.
    package let name: String
    private let descriptor: CInt
    private let path: String?

    /// Opens a socket in a folder for temporary files, or in the abstract namespace.
    ///
    /// - Throws: A system error if the socket cannot be bound.
    package init(isAbstract: Bool = false) throws {
        let unique = "nuthatch-\(UUID().uuidString)"
        path = isAbstract ? nil : FileManager.default.temporaryDirectory.path + "/" + unique
        name = path ?? "@" + unique
        let type = CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        descriptor = socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { throw SystemError.last("socket") }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = path.map { Array($0.utf8) + [0] } ?? [0] + Array(unique.utf8)
        let start = MemoryLayout<sockaddr_un>.size - MemoryLayout.size(ofValue: address.sun_path)
        unsafe withUnsafeMutableBytes(of: &address) { all in
            unsafe UnsafeMutableRawBufferPointer(rebasing: all[start...]).copyBytes(from: bytes)
        }
        let result = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(descriptor, $0, socklen_t(start + bytes.count))
            }
        }
        guard result == 0 else { throw SystemError.last("bind") }
    }

    deinit {
        close(descriptor)
        if let path { try? FileManager.default.removeItem(atPath: path) }
    }

    /// Returns the lines of the next datagram, or `nil` on timeout.
    package func next(seconds: Double = 20) -> [String]? {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard unsafe poll(&entry, 1, Int32(seconds * 1_000)) > 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe recv(descriptor, &bytes, bytes.count, 0)
        guard count >= 0 else { return nil }
        return String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n")
            .map(String.init)
    }

    /// Returns the lines of the next datagram that contains `line`, or `nil` on timeout.
    package func next(with line: String, seconds: Double = 20) -> [String]? {
        let deadline = Deadline.seconds(seconds)
        while let lines = next(seconds: Double(deadline.millisecondsLeft) / 1_000) {
            if lines.contains(line) { return lines }
        }
        return nil
    }
}
