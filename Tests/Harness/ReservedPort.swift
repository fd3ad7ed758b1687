import Glibc

/// A port of 127.0.0.1 that a program is told to listen on, held until that is released.
///
/// It is bound with SO_REUSEADDR and never listens: the system gives it to nobody who asks for any
/// port, while a listener that asks for it by number and has that option set too gets it, as often
/// as it wishes (socket(7)). Who connects before is refused.
package final class ReservedPort: Sendable {
    /// Its number.
    package let number: Int
    private let descriptor: CInt

    /// A free port.
    ///
    /// - Parameter space: Whose 127.0.0.1 it is; nil for that of this process.
    /// - Throws: What the system says, for example that no port is free.
    package init(in space: NetworkNamespace? = nil) throws {
        DescriptorLimit.raise()
        descriptor = try space?.perform(Socket.open) ?? Socket.open()
        number = try Socket.reserve(descriptor, on: "127.0.0.1")
    }

    deinit { _ = close(descriptor) }

    /// A free port that is held as long as this process runs.
    package static func forProcess() throws -> Int {
        let port = try ReservedPort()
        all.change { $0.append(port) }
        return port.number
    }

    private static let all = LockedBox<[ReservedPort]>([])
}

/// A listener whose backlog is full: who connects hears nothing.
package final class FullBacklogListener {
    private var sockets: [CInt] = []
    /// Its port.
    package let port: Int

    /// Listens on an address of this machine.
    ///
    /// - Parameters:
    ///   - address: An IPv4 address.
    ///   - port: The port; 0 for a free one.
    /// - Throws: What the system says, for example that the port is taken.
    package init(address: String = "127.0.0.1", port: Int = 0) throws {
        let listener = try Socket.open()
        sockets = [listener]
        self.port = try Socket.bind(listener, to: address, port: port)
        guard listen(listener, 0) == 0 else { throw SystemError.last("listen") }
        // A backlog of 0 takes one connection; the next hears nothing any more.
        for _ in 1...3 {
            let filler = try Socket.open()
            sockets.append(filler)
            _ = fcntl(filler, F_SETFL, fcntl(filler, F_GETFL) | O_NONBLOCK)
            _ = unsafe Socket.call(filler, address, port: self.port, to: connect)
        }
    }

    deinit { close() }

    /// Listens no more.
    package func close() {
        for socket in sockets { _ = Glibc.close(socket) }
        sockets = []
    }
}
