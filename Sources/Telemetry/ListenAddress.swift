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
        guard let (host, portText) = splitHostPort(text), let portText,
            let port = parsePort(portText)
        else { return nil }
        let bare = host == "localhost" ? "127.0.0.1" : unbracketed(host)
        guard let address = IPAddress(bare), (address.family == .v6) == host.hasPrefix("[")
        else { return nil }
        self.init(address: address, port: port)
    }

    package var description: String {
        address.family == .v6 ? "[\(address)]:\(port)" : "\(address):\(port)"
    }
}

/// `HOST`, `HOST:PORT`, `[V6]` or `[V6]:PORT` in two parts, the brackets kept.
func splitHostPort(_ text: String) -> (host: String, port: String?)? {
    if text.hasPrefix("[") {
        guard let close = text.firstIndex(of: "]") else { return nil }
        let rest = text[text.index(after: close)...]
        guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
        return (String(text[...close]), rest.isEmpty ? nil : String(rest.dropFirst()))
    }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard let host = parts.first, parts.count <= 2 else { return nil }
    return (String(host), parts.count == 2 ? String(parts[1]) : nil)
}

/// One to five decimal digits, at most 65535.
func parsePort(_ text: String) -> UInt16? {
    guard (1...5).contains(text.utf8.count),
        text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else { return nil }
    return UInt16(text)
}

/// `host` without the brackets around an IPv6 address.
func unbracketed(_ host: String) -> String {
    host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
}
