/// Which origins may be fetched from: any host, one, or all below a name; on one port or any.
package struct OriginPattern: Hashable, Sendable, CustomStringConvertible {
    /// Which hosts a pattern names.
    package enum Host: Hashable, Sendable {
        /// `*`
        case any
        /// A name in lower case or an address, IPv6 in brackets.
        case exactly(String)
        /// `*.name`: every host that ends in `.name`; the name itself is not one of them.
        case below(String)
    }

    package let host: Host
    /// The only port; nil for any.
    package let port: UInt16?

    /// `*`, `host` or `*.suffix`, each perhaps with `:port`; nil for anything else, URLs among it.
    package init?(_ text: String) {
        guard let (hostText, portText) = splitHostPort(text),
            let host = Self.parseHost(hostText)
        else { return nil }
        self.host = host
        guard let portText else {
            port = nil
            return
        }
        guard let number = parsePort(portText), number > 0 else { return nil }
        port = number
    }

    /// True if `host`, as in a normalised URL (lower case, IPv6 in brackets), is one of them.
    package func matches(host: String, port: UInt16) -> Bool {
        if let only = self.port, only != port { return false }
        switch self.host {
        case .any: return true
        case .exactly(let name): return host == name
        case .below(let name): return host.hasSuffix("." + name) && host.utf8.first != dot
        }
    }

    package var description: String {
        let text =
            switch host {
            case .any: "*"
            case .exactly(let name): name
            case .below(let name): "*." + name
            }
        return port.map { "\(text):\($0)" } ?? text
    }

    private static func parseHost(_ text: String) -> Host? {
        if text == "*" { return .any }
        if text.hasPrefix("[") {
            guard let address = IPAddress(unbracketed(text)), address.family == .v6
            else { return nil }
            return .exactly("[\(address)]")
        }
        if text.hasPrefix("*.") { return name(text.dropFirst(2)).map(Host.below) }
        return name(text[...]).map(Host.exactly)
    }

    /// A host name in lower case: labels of 1 to 63 letters, digits, `-` and `_`, 253 bytes in all.
    private static func name(_ text: Substring) -> String? {
        let labels = text.utf8.split(separator: dot, omittingEmptySubsequences: false)
        let isName = labels.allSatisfy { label in
            (1...63).contains(label.count) && label.allSatisfy(isLabelByte)
        }
        return isName && text.utf8.count <= 253 ? text.lowercased() : nil
    }

    private static func isLabelByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: true
        default: false
        }
    }
}

private let dot = UInt8(ascii: ".")
