package import Ground

/// Where a port is opened: a numeric address and a port, 0 for one that the kernel chooses.
package struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
    package let address: IPAddress
    package let port: UInt16

    package init(address: IPAddress, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// `127.0.0.1:8080`, `[::1]:8080`, or `localhost` (which is 127.0.0.1) with a port.
    package init?(_ text: String) {
        guard let parts = HostPort(text), let port = parts.port else { return nil }
        if parts.host == "localhost" {
            self.init(address: .v4(0x7F00_0001), port: port)
        } else {
            guard let address = parts.address else { return nil }
            self.init(address: address, port: port)
        }
    }

    package var description: String {
        address.bitCount == 128 ? "[\(address)]:\(port)" : "\(address):\(port)"
    }
}
