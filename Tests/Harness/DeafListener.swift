import Glibc

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
