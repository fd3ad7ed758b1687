/// Which origins may be fetched from: any host, one, or all below a name; on one port or any.
///
/// `*.example.com` means names below example.com, not example.com itself.
package struct OriginPattern: Hashable, Sendable {
    private enum Host: Hashable, Sendable {
        case any
        case name(String)
        case address(IPAddress)
        /// With its leading dot.
        case below(String)
    }

    private let host: Host
    /// The only port; nil for any.
    private let port: UInt16?

    /// Every origin.
    package static let everything = OriginPattern(host: .any, port: nil)

    private init(host: Host, port: UInt16?) {
        self.host = host
        self.port = port
    }

    /// `*`, `host` or `*.suffix`, each perhaps with `:port`; nil for anything else, URLs among it.
    ///
    /// Names are in ASCII (Punycode) and taken without regard to case and to a final dot; an IPv6
    /// address stands in brackets.
    package init?(_ text: String) {
        guard let parts = HostPort(text), parts.port != 0 else { return nil }
        port = parts.port
        if parts.host == "*" {
            host = .any
        } else if let address = parts.address {
            host = .address(address)
        } else if parts.host.hasPrefix("*.") {
            guard let name = Self.name(parts.host.dropFirst(2)) else { return nil }
            host = .below("." + name)
        } else {
            guard let name = Self.name(parts.host[...]) else { return nil }
            host = .name(name)
        }
    }

    /// True if the operator means this origin; `host` is in lower case, an IPv6 address without
    /// brackets.
    package func matches(host: String, port: UInt16) -> Bool {
        if let only = self.port, only != port { return false }
        let bare = host.hasSuffix(".") ? host.dropLast() : host[...]
        switch self.host {
        case .any: return true
        case .name(let name): return bare == name
        case .address(let address): return IPAddress(host) == address
        case .below(let suffix):
            return bare.utf8.count > suffix.utf8.count && bare.hasSuffix(suffix)
        }
    }

    /// A host name in lower case without its final dot: labels of 1 to 63 letters, digits, `-` and
    /// `_`, 253 bytes in all, the last label no number (other readers take that for an address).
    private static func name(_ text: Substring) -> String? {
        let bare = text.hasSuffix(".") ? text.dropLast() : text
        let labels = bare.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isName = labels.allSatisfy { label in
            (1...63).contains(label.count) && label.allSatisfy(isLabelByte)
        }
        guard isName, bare.utf8.count <= 253, let last = labels.last,
            !last.allSatisfy(ASCII.isDigit)
        else { return nil }
        return bare.lowercased()
    }

    private static func isLabelByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: true
        default: false
        }
    }
}

extension OriginPattern: CustomStringConvertible {
    /// As it can be written, in canonical form.
    package var description: String {
        let text =
            switch host {
            case .any: "*"
            case .name(let name): name
            case .address(let address):
                address.bitCount == 128 ? "[\(address)]" : "\(address)"
            case .below(let suffix): "*" + suffix
            }
        return port.map { "\(text):\($0)" } ?? text
    }
}
