/// Which origins may be fetched from: any host, one, or all below a name; on one port or any.
///
/// `*.example.com` means names below example.com, not example.com itself.
package struct OriginPattern: Hashable, Sendable {
    private enum Host: Hashable, Sendable {
        case any
        case name(String)
        case address(IPAddress)
        /// With its leading dot.
        case subdomains(String)
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
            guard let name = DomainName.canonical(parts.host.dropFirst(2)) else { return nil }
            host = .subdomains("." + name)
        } else {
            guard let name = DomainName.canonical(parts.host[...]) else { return nil }
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
        case .subdomains(let suffix):
            return bare.utf8.count > suffix.utf8.count && bare.hasSuffix(suffix)
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
            case .subdomains(let suffix): "*" + suffix
            }
        return port.map { "\(text):\($0)" } ?? text
    }
}
