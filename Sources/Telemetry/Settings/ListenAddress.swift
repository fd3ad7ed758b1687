package import Ground

/// The address of a listening socket: a numeric address and a port, 0 to let the kernel choose.
package struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
    /// The numeric address.
    package let address: IPAddress
    /// The port; 0 to let the kernel choose.
    package let port: UInt16

    /// Creates an address from its parts.
    package init(address: IPAddress, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// Parses `127.0.0.1:8080`, `[::1]:8080`, or `localhost` (127.0.0.1) with a port; `nil` for
    /// anything else, such as another name.
    package init?(_ text: String) {
        guard let parts = HostPort(text), let port = parts.port else { return nil }
        if parts.host == "localhost" {
            self.init(address: .v4(0x7F00_0001), port: port)
        } else {
            guard let address = parts.address else { return nil }
            self.init(address: address, port: port)
        }
    }

    /// The address in the form that ``init(_:)`` accepts.
    package var description: String {
        address.bitCount == 128 ? "[\(address)]:\(port)" : "\(address):\(port)"
    }
}
