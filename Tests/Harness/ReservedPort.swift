import Glibc

/// A port of 127.0.0.1 for a program to listen on, reserved until release.
///
/// It is bound with SO_REUSEADDR and never listens: the system does not assign it to sockets that
/// bind port 0, while a listener that binds it by number with the same option succeeds, any number
/// of times (socket(7)). Connections made before are refused.
package final class ReservedPort: Sendable {
    /// The port number.
    package let number: Int
    private let descriptor: CInt

    /// Reserves a free port.
    ///
    /// - Parameter space: The network namespace of the address; `nil` for that of this process.
    /// - Throws: A system error, for example if no port is free.
    package init(in space: NetworkNamespace? = nil) throws {
        DescriptorLimit.raise()
        descriptor = try space?.perform(Socket.open) ?? Socket.open()
        number = try Socket.reserve(descriptor, on: "127.0.0.1")
    }

    deinit { _ = close(descriptor) }

    /// Reserves a free port as long as this process runs.
    package static func forProcess() throws -> Int {
        let port = try ReservedPort()
        all.change { $0.append(port) }
        return port.number
    }

    private static let all = LockedBox<[ReservedPort]>([])
}

/// A listener with a full backlog: connection attempts get no reply.
package final class FullBacklogListener {
    private var sockets: [CInt] = []
    /// The port number.
    package let port: Int

    /// Listens on an address of this machine.
    ///
    /// - Parameters:
    ///   - address: An IPv4 address.
    ///   - port: The port; 0 for a free one.
    /// - Throws: A system error, for example if the port is taken.
    package init(address: String = "127.0.0.1", port: Int = 0) throws {
        let listener = try Socket.open()
        sockets = [listener]
        self.port = try Socket.bind(listener, to: address, port: port)
        guard listen(listener, 0) == 0 else { throw SystemError.last("listen") }
        // A backlog of 0 accepts one connection; further attempts get no reply.
        for _ in 1...3 {
            let filler = try Socket.open()
            sockets.append(filler)
            _ = fcntl(filler, F_SETFL, fcntl(filler, F_GETFL) | O_NONBLOCK)
            _ = unsafe Socket.call(filler, address, port: self.port, to: connect)
        }
    }

    deinit { close() }

    /// Stops listening.
    package func close() {
        for socket in sockets { _ = Glibc.close(socket) }
        sockets = []
    }
}
