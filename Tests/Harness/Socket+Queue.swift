import Foundation
import Glibc

extension Socket {
    /// Whether the process at the other end, on this machine, has read everything that was sent.
    package var isReadByPeer: Bool {
        let text = Self.table()
        guard let own = unsafe Self.port(of: descriptor, getsockname),
            let peer = unsafe Self.port(of: descriptor, getpeername)
        else { return false }
        for line in text.split(separator: "\n").dropFirst() {
            // Number, local and remote address, state, send and receive queue, …
            let words = line.split(separator: " ")
            guard words.count > 4, words[1].hasSuffix(":" + hexadecimal(peer)),
                words[2].hasSuffix(":" + hexadecimal(own))
            else { continue }
            return words[4].hasSuffix(":00000000")
        }
        return false
    }

    /// The kernel gives it in parts, of which a short one is not the last.
    private static func table() -> String {
        let file = FileHandle(forReadingAtPath: "/proc/net/tcp")
        var text = ""
        while let part = try? file?.read(upToCount: 65_536), !part.isEmpty {
            text += String(decoding: part, as: UTF8.self)
        }
        return text
    }

    private func hexadecimal(_ port: UInt16) -> String {
        let digits = String(port, radix: 16, uppercase: true)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }

    typealias AddressCall = (
        CInt, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?
    ) -> CInt

    /// The port at an end of a connection that the system names.
    static func port(of descriptor: CInt, _ question: AddressCall) -> UInt16? {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe question(descriptor, $0, &size)
            }
        }
        return result == 0 ? UInt16(bigEndian: address.sin_port) : nil
    }
}
