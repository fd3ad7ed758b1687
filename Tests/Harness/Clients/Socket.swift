import Foundation
import Glibc
package import NIOCore

/// The result of a read from a socket.
package enum SocketReadResult {
    case bytes
    case end
    case reset
    case timedOut
}

/// A TCP connection with blocking calls that have deadlines.
package final class Socket {
    private(set) var descriptor: CInt

    /// Connects to a port of 127.0.0.1.
    ///
    /// - Parameters:
    ///   - port: The port.
    ///   - address: The local address to connect from; `nil` for any.
    ///   - receiveBufferBytes: Size of the kernel's receive buffer, set before connecting.
    ///   - space: The network namespace of the server; `nil` for that of this process.
    /// - Throws: A system error, for example if the connection is refused.
    package init(
        port: Int, from address: String? = nil, receiveBufferBytes: CInt? = nil,
        in space: NetworkNamespace? = nil
    ) throws {
        DescriptorLimit.raise()
        descriptor = try space?.perform(Self.open) ?? Self.open()
        if let receiveBufferBytes { setOption(SOL_SOCKET, SO_RCVBUF, receiveBufferBytes) }
        setOption(CInt(IPPROTO_TCP), TCP_NODELAY, 1)
        if let address { unsafe try check("bind", call(address, port: 0, to: Glibc.bind)) }
        unsafe try check("connect", call("127.0.0.1", port: port, to: connect))
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    deinit { close() }

    static func open() throws -> CInt {
        let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_INET, type, 0)
        guard descriptor >= 0 else { throw SystemError.last("socket") }
        return descriptor
    }

    /// Binds a socket to a free port of an address, which a later caller may bind by number.
    ///
    /// - Returns: The port.
    static func reserve(_ descriptor: CInt, on host: String) throws -> Int {
        var isShared: CInt = 1
        let size = socklen_t(MemoryLayout<CInt>.size)
        guard unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isShared, size) == 0 else {
            throw SystemError.last("setsockopt")
        }
        return try bind(descriptor, to: host, port: 0)
    }

    /// Binds a socket to an address.
    ///
    /// - Returns: The bound port: `port`, or the assigned one if that is 0.
    static func bind(_ descriptor: CInt, to host: String, port: Int) throws -> Int {
        guard unsafe call(descriptor, host, port: port, to: Glibc.bind) == 0,
            let own = unsafe Self.port(of: descriptor, getsockname)
        else { throw SystemError.last("bind") }
        return Int(own)
    }

    /// Returns a new socket bound to a free port of an address.
    static func bound(to host: String) throws -> CInt {
        let descriptor = try open()
        guard unsafe call(descriptor, host, port: 0, to: Glibc.bind) == 0,
            listen(descriptor, 4_096) == 0
        else {
            defer { Glibc.close(descriptor) }
            throw SystemError.last("bind")
        }
        return descriptor
    }

    /// Makes a system call with this socket and an address.
    private func call(
        _ host: String, port: Int, to call: (CInt, UnsafePointer<sockaddr>, socklen_t) -> CInt
    ) -> CInt {
        unsafe Self.call(descriptor, host, port: port, to: call)
    }

    /// Makes a system call with a socket and an address.
    static func call(
        _ descriptor: CInt, _ host: String, port: Int,
        to call: (CInt, UnsafePointer<sockaddr>, socklen_t) -> CInt
    ) -> CInt {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(port).bigEndian)
        address.sin_addr.s_addr = unsafe inet_addr(host)
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe call(descriptor, $0, size)
            }
        }
    }

    private func check(_ call: String, _ result: CInt) throws {
        guard result != 0 else { return }
        let error = SystemError.last(call)
        close()
        throw error
    }

    /// Sends all the bytes.
    ///
    /// - Throws: A system error, or `EAGAIN` if the peer does not accept them in time.
    package func send(_ bytes: [UInt8], seconds: Double = 30) throws {
        let deadline = Deadline.seconds(seconds)
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { all in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: all[sent...])
                return unsafe Glibc.send(
                    descriptor, rest.baseAddress, rest.count, CInt(MSG_NOSIGNAL))
            }
            if count >= 0 {
                sent += count
            } else if errno == EAGAIN {
                guard wait(CInt(POLLOUT), deadline) else { throw SystemError.last("send") }
            } else if errno != EINTR {
                throw SystemError.last("send")
            }
        }
    }

    /// Sends text.
    package func send(_ text: String) throws {
        try send(Array(text.utf8))
    }

    /// Appends received bytes, at most `bytesMax`, and waits for the first byte until the deadline.
    package func receive(
        into buffer: inout ByteBuffer, bytesMax: Int, _ deadline: Deadline
    ) -> SocketReadResult {
        while true {
            var count = 0
            unsafe buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: bytesMax) { space in
                count = unsafe recv(descriptor, space.baseAddress, bytesMax, 0)
                return max(0, count)
            }
            if count > 0 { return .bytes }
            if count == 0 { return .end }
            switch errno {
            case EAGAIN: guard wait(CInt(POLLIN), deadline) else { return .timedOut }
            case EINTR: continue
            default: return .reset
            }
        }
    }

    /// Waits until there is something to read, the end included, and returns false on timeout.
    package func waitForInput(seconds: Double) -> Bool {
        wait(CInt(POLLIN), .seconds(seconds))
    }

    /// Returns true if the peer ends the connection before the deadline, whatever it sends before.
    package func isEndedByPeer(seconds: Double) -> Bool {
        let deadline = Deadline.seconds(seconds)
        var buffer = ByteBuffer()
        while true {
            buffer.clear()
            switch receive(into: &buffer, bytesMax: 4_096, deadline) {
            case .bytes: continue
            case .end, .reset: return true
            case .timedOut: return false
            }
        }
    }

    /// Shuts down the sending side.
    package func finishSending() {
        _ = shutdown(descriptor, CInt(SHUT_WR))
    }

    /// Ends the connection with a reset.
    package func reset() {
        var value = linger(l_onoff: 1, l_linger: 0)
        let size = socklen_t(MemoryLayout<linger>.size)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, size)
        close()
    }

    /// Closes the connection.
    package func close() {
        guard descriptor >= 0 else { return }
        _ = Glibc.close(descriptor)
        descriptor = -1
    }

    private func wait(_ events: CInt, _ deadline: Deadline) -> Bool {
        var entry = pollfd(fd: descriptor, events: CShort(events), revents: 0)
        while true {
            let count = unsafe poll(&entry, 1, deadline.millisecondsLeft)
            if count > 0 { return true }
            guard count < 0, errno == EINTR else { return false }
        }
    }

    private func setOption(_ level: CInt, _ name: CInt, _ value: CInt) {
        var value = value
        let size = socklen_t(MemoryLayout<CInt>.size)
        _ = unsafe setsockopt(descriptor, level, name, &value, size)
    }
}

extension Socket {
    /// True if the local process at the other end has read everything that was sent.
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

    /// Reads the kernel's socket table, which arrives in parts; a short part is not the last.
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

    /// Returns the port of one end of a connection, by `getsockname` or `getpeername`.
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

/// The number of files and sockets this process may hold open.
package enum DescriptorLimit {
    /// Raises the soft limit to the hard limit, once, so that thousands of connections fit.
    package static func raise() {
        _ = raised
    }

    private static let raised: Void = {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return
        }
        limit.rlim_cur = limit.rlim_max
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }()
}

/// A failed system call.
package struct SystemError: Error, CustomStringConvertible {
    /// The name of the call.
    package let call: String
    /// The error number.
    package let number: CInt

    /// The name of the call and the system's message.
    package var description: String {
        unsafe "\(call): \(String(cString: strerror(number)))"
    }

    static func last(_ call: String) -> SystemError { SystemError(call: call, number: errno) }
}
